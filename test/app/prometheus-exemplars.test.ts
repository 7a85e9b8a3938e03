import type { Server } from 'node:http';
import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { Controller, Get } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { prometheusSink } from '../../src/entries/prometheus.js';
import { adapterOf, adapters, startApp } from '../fixtures/app.js';
import { AlsContextManager } from '../fixtures/otel.js';

@Controller('quick')
class QuickController {
  @Get()
  quick() {
    return 'quick';
  }
}

beforeAll(() => context.setGlobalContextManager(new AlsContextManager()));
afterAll(() => context.disable());

describe.each(adapters)('exemplars on %s', (adapter) => {
  it('are the traces of the requests, without another sink', async () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const span = trace.setSpan(
      ROOT_CONTEXT,
      trace.wrapSpanContext({ traceId, spanId: 'b7ad6b7169203331', traceFlags: 1 }),
    );
    const platform = adapterOf(adapter);
    const running = await startApp(adapter, {
      perf: { sinks: [prometheusSink({ exemplars: true })] },
      metadata: { controllers: [QuickController] },
      adapter: platform,
      beforeInit: () => {
        // As the HTTP instrumentation does: listeners of requests run inside the span.
        const server = platform.getHttpServer() as Server;
        const emit = server.emit.bind(server) as (...args: unknown[]) => boolean;
        server.emit = (...args: unknown[]) =>
          args[0] === 'request' ? context.with(span, () => emit(...args)) : emit(...args);
      },
    });
    await (await fetch(`${running.url}/quick`)).text();
    await running.requests();
    const response = await fetch(`${running.url}/metrics`);
    const body = await response.text();
    await running.close();
    expect(response.headers.get('content-type')).toContain('application/openmetrics-text');
    expect(body).toMatch(
      /^http_server_request_duration_seconds_bucket\{.*http_route="\/quick".*\} 1 # \{trace_id="0af7651916cd43dd8448eb211c80319c",span_id="b7ad6b7169203331"\} 0\.\d+ \d+(\.\d+)?$/m,
    );
  });
});
