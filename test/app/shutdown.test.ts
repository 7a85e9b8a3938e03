import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Inject, Injectable, Logger, type BeforeApplicationShutdown } from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { defer, PerfService, type PerfModuleOptions } from '../../src/index.js';
import { memorySink, type MemorySink } from '../../src/entries/testing.js';
import { adapterOf, adapters } from '../fixtures/app.js';
import { closeApps, listeningApp } from '../fixtures/build-app.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

const steps: string[] = [];
let isOpen = false;
let closeStream: () => void = () => {};

@Controller()
class OrdersController {
  @Get('order')
  order() {
    defer(
      async () => {
        steps.push('deferred work begins');
        await delay(20);
        steps.push('deferred work ends');
      },
      { name: 'receipt' },
    );
    return {};
  }
  @Get('stream')
  stream() {
    isOpen = true;
    return new Promise((resolve) => (closeStream = () => resolve({})));
  }
}

let go: () => void = () => {};
let isWaiting = false;

/** Waits as terminus' `gracefulShutdownTimeoutMs` does. */
@Injectable()
class Waiting implements BeforeApplicationShutdown {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}
  async beforeApplicationShutdown() {
    const told = new Promise<void>((resolve) => (go = resolve));
    isWaiting = true;
    await Promise.all([delay(120), told]);
    steps.push(`waited, ready: ${this.perf.ready().ready}`);
  }
  onApplicationShutdown() {
    steps.push('databases close');
  }
}

const lines = (level: 'log' | 'warn'): string[] =>
  vi.mocked(Logger.prototype[level]).mock.calls.map(([message]) => String(message));

async function start(adapter: (typeof adapters)[number], perf: PerfModuleOptions, sink: MemorySink = memorySink()) {
  steps.length = 0;
  isWaiting = false;
  for (const level of ['log', 'warn'] as const) vi.spyOn(Logger.prototype, level).mockImplementation(() => {});
  const metadata = { controllers: [OrdersController], providers: [Waiting] };
  return listeningApp(adapterOf(adapter), { metadata, perf: { sinks: [sink], ...perf } });
}

afterEach(async () => {
  closeStream();
  go();
  await closeApps();
  vi.restoreAllMocks();
});

describe.each(adapters)('the end of an application on %s', (adapter) => {
  it('is not ready, waits, closes, drains and flushes in this order, and says so in one line', async () => {
    const sink = memorySink();
    const publish = sink.publish.bind(sink);
    sink.publish = (batch) => {
      if (batch.some(({ kind }) => kind === 'deferred')) steps.push('records are flushed');
      return publish(batch);
    };
    const { app, url } = await start(adapter, { defer: { drainTimeoutMs: 4_000 }, flushTimeoutMs: 3_000 }, sink);
    const closing = app.close();
    await until('it waits', () => isWaiting);
    expect((await fetch(`${url}/order`)).status).toBe(200);
    go();
    await closing;
    expect(steps.filter((step) => !step.startsWith('deferred'))).toEqual([
      'waited, ready: false',
      'records are flushed',
      'databases close',
    ]);
    const [line, ...more] = lines('log').filter((text) => text.startsWith('Shutdown: '));
    expect(more).toEqual([]);
    expect(line).toMatch(
      /^Shutdown: (?:waited \d\.\d s, )*waited (\d\.\d) s, closed the server \d\.\d s, drained deferred work \d\.\d s, flushed records \d\.\d s\. From closing the server on it took \d\.\d s, of 11\.0 s at most\.$/,
    );
    expect(Number(/waited (\S+) s, closed/.exec(line!)![1])).toBeGreaterThanOrEqual(0.1);
  });

  it('runs accepted work and flushes records while an open request holds the server', async () => {
    const sink = memorySink();
    const { app, url, port } = await start(
      adapter,
      { defer: { drainTimeoutMs: 500, concurrency: 1 }, flushTimeoutMs: 500 },
      sink,
    );
    isOpen = false;
    const client = await RawClient.open(port);
    client.get('/stream');
    await until('the request runs', () => isOpen);
    const closing = app.close();
    await until('it waits', () => isWaiting);
    expect((await fetch(`${url}/order`)).status).toBe(200);
    go();
    const warnings = (): string[] => lines('warn').filter((text) => text.startsWith('The server has not closed'));
    await until('records', () => sink.records.some(({ kind }) => kind === 'deferred') && warnings().length > 0);
    expect(steps).not.toContain('databases close');
    expect(warnings()).toEqual([expect.stringContaining('within 1000 ms. Still open: 1 × GET /stream. They go on')]);
    closeStream();
    client.leave();
    await closing;
    expect(steps.at(-1)).toBe('databases close');
  });

  it('ends a kept connection with the answer under way', async () => {
    const { app, url } = await start(adapter, {});
    isOpen = false;
    const answer = fetch(`${url}/stream`);
    await until('the request runs', () => isOpen);
    const closing = app.close();
    await until('it waits', () => isWaiting);
    closeStream();
    expect((await answer).headers.get('connection')).toBe('close');
    await (await answer).text();
    go();
    await closing;
  });
});
