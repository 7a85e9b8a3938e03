import { type Context, context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { Controller, Get, Param } from '@nestjs/common';
import type { DataPoint, Histogram } from '@opentelemetry/sdk-metrics';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requestContext } from '../../src/core/request-context.js';
import { openTelemetrySink } from '../../src/entries/opentelemetry.js';
import { adapterOf, adapters, startApp } from '../fixtures/app.js';
import { AlsContextManager, OtelLoopback } from '../fixtures/otel.js';

@Controller('users')
class UsersController {
  @Get(':id')
  find(@Param('id') id: string) {
    return { id };
  }
}
@Controller('trace')
class TraceController {
  /** What a block of this request would carry. */
  @Get()
  current() {
    return { traceId: requestContext.getStore()?.traceId };
  }
}

let otel: OtelLoopback;
beforeEach(() => {
  otel = new OtelLoopback();
});
afterEach(() => otel.stop());

describe.each(adapters)('openTelemetrySink on %s', (adapter) => {
  const start = (options: Parameters<typeof startApp>[1] = {}) =>
    startApp(adapter, {
      perf: { sinks: [openTelemetrySink({ meterProvider: otel.provider })], context: true },
      metadata: { controllers: [UsersController, TraceController] },
      ...options,
    });

  it('exports what the clients counted; closing the application exports the last interval', async () => {
    const running = await start();
    for (let i = 0; i < 30; i++) await (await fetch(`${running.url}${i < 20 ? '/users/' : '/x'}${i}`)).text();
    await running.close();
    const points = otel.last().get('http.server.request.duration')!.dataPoints as DataPoint<Histogram>[];
    expect(points.map(({ attributes, value }) => [attributes, value.count])).toEqual([
      [{ 'http.request.method': 'GET', 'http.route': '/users/:id', 'http.response.status_code': 200 }, 20],
      [{ 'http.request.method': 'GET', 'http.response.status_code': 404 }, 10],
    ]);
    const durations = running.sink.records.map((record) => (record.kind === 'request' ? record.durationMs : 0));
    const sum = points.reduce((total, { value }) => total + value.sum!, 0);
    expect(sum).toBeCloseTo(durations.reduce((a, b) => a + b, 0) / 1_000, 9);
  });

  it('takes over the trace id of the span that is active when a request starts', async () => {
    context.setGlobalContextManager(new AlsContextManager());
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const span: Context = trace.setSpan(
      ROOT_CONTEXT,
      trace.wrapSpanContext({ traceId, spanId: 'b7ad6b7169203331', traceFlags: 1 }),
    );
    let traced = true;
    const platform = adapterOf(adapter);
    const running = await start({
      adapter: platform,
      beforeInit: () => {
        // As the HTTP instrumentation does: every listener of the server's events runs inside the span.
        const server = platform.getHttpServer() as import('node:http').Server;
        const emit = server.emit.bind(server) as (...args: unknown[]) => boolean;
        server.emit = (...args: unknown[]) => (traced ? context.with(span, () => emit(...args)) : emit(...args));
      },
    });
    const seen = async (): Promise<unknown> => (await fetch(`${running.url}/trace`)).json();
    expect(await seen()).toEqual({ traceId });
    traced = false;
    expect(await seen()).toEqual({ traceId: null });
    await running.close();
    context.disable();
  });
});
