import { type Context, context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { Controller, Get } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RequestRecord, RequestRef } from '../../src/index.js';
import { openTelemetrySink } from '../../src/entries/opentelemetry.js';
import { adapterOf, either, startApp } from '../fixtures/app.js';
import { AlsContextManager } from '../fixtures/otel.js';

@Controller('block')
class BlockController {
  @Get()
  block() {
    const startedMs = performance.now();
    while (performance.now() - startedMs < 120);
    return 'blocked';
  }
}

beforeAll(() => context.setGlobalContextManager(new AlsContextManager()));
afterAll(() => context.disable());

describe.each(either('express'))('spans with openTelemetrySink on %s', (adapter) => {
  it('without a meter provider, too, the active span of when a request starts is on its record and the blocks it is in', async () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const spanId = 'b7ad6b7169203331';
    const span: Context = trace.setSpan(ROOT_CONTEXT, trace.wrapSpanContext({ traceId, spanId, traceFlags: 1 }));
    let traced = true;
    const platform = adapterOf(adapter);
    const running = await startApp(adapter, {
      perf: { sinks: [openTelemetrySink()] },
      metadata: { controllers: [BlockController] },
      adapter: platform,
      beforeInit: () => {
        // As the HTTP instrumentation does: whoever listens to requests runs inside the span.
        const server = platform.getHttpServer() as import('node:http').Server;
        const emit = server.emit.bind(server) as (...args: unknown[]) => boolean;
        server.emit = (...args: unknown[]) =>
          traced && args[0] === 'request' ? context.with(span, () => emit(...args)) : emit(...args);
      },
    });
    /** Again where a busy machine let nobody look: the block is then nobody's. */
    const blocked = async (attempts = 10): Promise<{ ref: RequestRef | null | undefined; request: RequestRecord }> => {
      running.sink.records.length = 0;
      await (await fetch(`${running.url}/block`)).text();
      await running.requests();
      const blocks = running.sink.records.filter((record) => record.kind === 'block');
      const refs = blocks.flatMap(({ request, suspect, delayed }) => [request, suspect, ...delayed]);
      const requests = running.sink.records.filter((record) => record.kind === 'request');
      expect(requests).toHaveLength(1);
      const ref = refs.find((each) => each?.route === '/block');
      if (ref === undefined && attempts > 1) return blocked(attempts - 1);
      return { ref, request: requests[0]! };
    };
    const inSpan = await blocked();
    expect(inSpan.ref).toMatchObject({ traceId, spanId });
    expect(inSpan.request).toMatchObject({ route: '/block', traceId, spanId });
    traced = false;
    const outside = await blocked();
    expect(outside.ref).toMatchObject({ traceId: null });
    expect(outside.ref).not.toHaveProperty('spanId');
    expect(outside.request).not.toHaveProperty('traceId');
    expect(outside.request).not.toHaveProperty('spanId');
    await running.close();
  });
});
