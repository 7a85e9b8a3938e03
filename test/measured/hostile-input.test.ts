import { execFileSync } from 'node:child_process';
import { type INestApplication, Body, Controller, Get, Inject, type LoggerService, Param, Post } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type BlockRecord, Deferrer, loggerSink, PerfService, staticGates } from '../../src/index.js';
import { openTelemetrySink } from '../../src/entries/opentelemetry.js';
import { prometheusSink } from '../../src/entries/prometheus.js';
import { statsigSink } from '../../src/entries/statsig.js';
import { settle } from '../../src/entries/testing.js';
import { adapters, startApp, type TestApp } from '../fixtures/app.js';
import { OtelLoopback } from '../fixtures/otel.js';
import { RawClient } from '../fixtures/socket.js';
import { StatsigLoopback } from '../fixtures/statsig-server.js';
import { until } from '../fixtures/until.js';

/** Stands in everything that is sent: where it turns up, something the client wrote has come through. */
const MARK = 'evil4711';
/** U+009B is an escape sequence's start by itself; Node takes it in headers and URLs. `RawClient` sends it as one byte. */
const CSI = '\u009b31m';
/** A shell's and a terminal's means, and Prometheus' label quoting. */
const TRICKS = `${MARK}'"\`$(touch${MARK});${CSI}{a="b"}\\`;
/** What ends a line or commands a terminal. */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
const LONG = 'x'.repeat(6_000);

@Controller('shop')
class ShopController {
  constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {}
  @Get('block/:id')
  block(@Param('id') _id: string) {
    const end = performance.now() + 120;
    while (performance.now() < end);
    return 'done';
  }
  @Post('orders')
  create(@Body() order: { note?: string }) {
    // Error messages of applications hold what the client sent.
    this.deferrer.defer(() => {
      throw new Error(`cannot send ${order.note ?? 'nothing'}`);
    });
    return {};
  }
}

class Lines implements LoggerService {
  readonly lines: string[] = [];
  private readonly keep = (message: unknown): void => void this.lines.push(String(message));
  log = this.keep;
  warn = this.keep;
  error = this.keep;
  debug = this.keep;
}

/** Every text inside a value, names of fields included. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [key, ...textsIn(inner)]);
}

describe.each(adapters)('what a hostile client sends, on %s', (adapter) => {
  let test: TestApp;
  let logger: Lines;
  let otel: OtelLoopback;
  let statsig: StatsigLoopback;
  beforeEach(async () => {
    logger = new Lines();
    otel = new OtelLoopback();
    statsig = await new StatsigLoopback().start();
    const client = statsig.client();
    await client.initializeAsync();
    test = await startApp(adapter, {
      metadata: { controllers: [ShopController] },
      nest: { logger },
      perf: {
        eventLoop: { replay: { maxBodyBytes: 10_000, allowHeaders: ['x-trick', 'accept', 'referer'] } },
        experiments: { gates: staticGates({ fast: true }) },
        sinks: [
          loggerSink(),
          prometheusSink(),
          openTelemetrySink({ meterProvider: otel.provider }),
          statsigSink({ client, pod: 'pod-1' }),
        ],
      },
    });
  });
  afterEach(async () => {
    await test.close();
    await otel.stop();
    await statsig.stop();
  });

  const tricks = [
    `x-trick: ${TRICKS}`,
    `accept: ${TRICKS}`,
    `referer: http://x/${TRICKS}${LONG}`,
    `x-request-id: ${TRICKS}`,
    `traceparent: 00-${TRICKS}-${MARK}-01`,
    `user-agent: ${TRICKS}`,
    `cookie: a=${TRICKS}`,
    `x-forwarded-for: ${TRICKS}`,
    `accept-encoding: ${MARK};q=1, br;q=0`,
  ].join('\r\n');
  const send = async (method: string, path: string, body = ''): Promise<void> => {
    const client = await RawClient.open(test.port);
    const length =
      body === '' ? '' : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body, 'latin1')}\r\n`;
    const head = `${method} ${path} HTTP/1.1\r\nhost: ${MARK}$(id).test\r\n${tricks}\r\n${length}connection: close\r\n\r\n`;
    client.socket.write(Buffer.from(head + body, 'latin1'));
    await until('the end of the connection', () => client.socket.closed);
  };
  const path = `${encodeURIComponent(TRICKS)}/"\`$(touch\${IFS}${MARK})'${MARK}`;
  const everywhere = async (app: INestApplication): Promise<Record<string, string[]>> => {
    await settle(app);
    const metrics = await (await fetch(`${test.url}/metrics`)).text();
    await otel.provider.forceFlush();
    const points = [...otel.last().values()].flatMap(({ dataPoints }) =>
      dataPoints.map(({ attributes }) => attributes),
    );
    return {
      logs: logger.lines,
      records: textsIn(test.sink.records),
      snapshot: textsIn(app.get(PerfService).snapshot()),
      metrics: metrics.split('\n'),
      otel: textsIn(points),
      statsig: textsIn(statsig.posts),
    };
  };

  it('is in no log line, label, curl line or snapshot unescaped or without bound', async () => {
    for (const method of ['GET', 'POST', 'PROPFIND', 'M-SEARCH']) {
      await send(method, `/${path}`);
      await send(method, `/shop/${path}?${path}=${path}`);
      await send(method, `/${path}?${LONG}`);
    }
    await send('POST', '/shop/orders', `{"note":"${MARK}\\u001b[31m\\r\\nroot: all is well\\u2028${LONG}"}`);
    await send('POST', '/shop/orders', `{"note":${TRICKS}`);
    const blocked = async (): Promise<boolean> => {
      await send('GET', `/shop/block/${path.replace('/', '-')}?q=${path}`);
      await settle(test.app);
      return test.sink.records.some((record) => record.kind === 'block' && record.curl !== null);
    };
    await until('a block with a curl line', blocked, 45_000);
    const found = await everywhere(test.app);
    for (const [place, texts] of Object.entries(found)) {
      expect(texts.length, place).toBeGreaterThan(0);
      for (const text of texts) {
        // A message of several lines is this library's own: the lines themselves must be clean.
        for (const line of text.split('\n')) expect(line, place).not.toMatch(CONTROL);
        expect(text.length, `${place}: ${text.slice(0, 200)}`).toBeLessThan(8_192);
      }
    }
    // Nothing a client wrote is a label, a name or an id.
    for (const place of ['snapshot', 'metrics', 'otel', 'statsig'])
      expect(found[place]!.join('\n')).not.toContain(MARK);
    const requests = test.sink.records.filter((record) => record.kind === 'request');
    expect(textsIn(requests).join('\n')).not.toContain(MARK);
    // A line of the log is this library's: what was sent cannot make one of its own.
    expect(found['logs']!.flatMap((message) => message.split('\n')).filter((line) => line.startsWith('root:'))).toEqual(
      [],
    );

    const { curl } = test.sink.records.find(
      (record): record is BlockRecord => record.kind === 'block' && record.curl !== null,
    )!;
    expect(curl).toContain(MARK);
    const words = execFileSync('sh', [
      '-c',
      `curl() { for word do printf '%s\\n' "$word"; done; }\n${curl}`,
    ]).toString();
    // Each word is an option, its value or the URL; a shell has run nothing of it.
    expect(words.trim().split('\n')).toSatisfy((lines: string[]) =>
      lines.every((word) =>
        /^(?:-X|-H|--globoff|--head|--data-raw|GET|http:\/\/127\.0\.0\.1:\d+\/.*|[\w-]+: .*)$/.test(word),
      ),
    );
  }, 120_000); // Blocks are repeated until one is attributed.

  it('makes no route, series or event name of its own, however much of it comes', async () => {
    for (let n = 0; n < 60; n++) await send(n % 2 === 0 ? 'GET' : 'PURGE', `/${MARK}${n}/${path}`);
    const { metrics } = await everywhere(test.app);
    const series = metrics!.filter((line) => line.startsWith('http_server_request_duration_seconds_count'));
    expect(series.length).toBeLessThanOrEqual(3);
    expect(test.app.get(PerfService).snapshot().routes.length).toBeLessThanOrEqual(3);
  });
});
