import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Controller, Get, Inject, Injectable, Req, Sse } from '@nestjs/common';
import { defer, interval, map, of, take } from 'rxjs';
import { expect, it, describe, vi, afterEach } from 'vitest';
import { type DeferContext, type DeferredWork, type DeferOptions, Deferrer, DeferWork } from '../../src/index.js';
import { bullmqStore } from '../../src/entries/bullmq.js';
import { MemoryPlace, MemoryStore } from '../contract/memory-store.js';
import { adapters, startApp } from '../fixtures/app.js';
import { until } from '../fixtures/until.js';

@Injectable()
class Log {
  readonly results: unknown[] = [];
}

@Injectable()
class Remember implements DeferredWork<{ result: unknown }> {
  constructor(@Inject(Log) private readonly log: Log) {}
  prepare({ result }: DeferContext): { result: unknown } {
    return { result };
  }
  run({ result }: { result: unknown }): void {
    this.log.results.push(result);
  }
}

@Injectable()
class Post implements DeferredWork<string> {
  constructor(@Inject(Log) private readonly log: Log) {}
  /** As HttpService of @nestjs/axios: nothing happens before it is subscribed to. */
  run(what: string) {
    return defer(() => of(this.log.results.push(what)));
  }
}

const logOf = (request: unknown): Log => (request as { log: Log }).log;

@Controller()
class ResultsController {
  constructor(@Inject(Log) private readonly log: Log) {}
  @Get('observed-work')
  @DeferWork(Post)
  @DeferWork(({ result, request }) => defer(() => of(logOf(request).results.push(`${result} by function`))))
  observedWork(@Req() request: object) {
    Object.assign(request, { log: this.log });
    return 'sent';
  }
  @Get('promised')
  @DeferWork(Remember)
  async promised() {
    return of(1, 2);
  }
  @Sse('events')
  @DeferWork(Remember)
  async events() {
    return interval(1).pipe(
      take(2),
      map((number) => ({ data: String(number) })),
    );
  }
}

describe.each(adapters)('what a handler returns, on %s', (adapter) => {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    vi.restoreAllMocks();
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  });
  async function start(defer: DeferOptions = {}) {
    const metadata = { controllers: [ResultsController], providers: [Log, Remember, Post] };
    const app = await startApp(adapter, { metadata, perf: { defer } });
    return { ...app, deferrer: app.app.get(Deferrer), log: app.app.get(Log) };
  }

  it('as the promise of an observable is its last value', async () => {
    const app = await start();
    cleanups.push(() => app.close());
    expect(await (await fetch(`${app.url}/promised`)).text()).toBe('2');
    await app.deferrer.idle();
    expect(app.log.results).toEqual([2]);
  });

  it('as the promise of server-sent events is no result', async () => {
    const app = await start();
    cleanups.push(() => app.close());
    expect(await (await fetch(`${app.url}/events`)).text()).toContain('data: 1');
    await app.deferrer.idle();
    expect(app.log.results).toEqual([undefined]);
  });

  it('work that returns an observable is done when that completes', async () => {
    const app = await start({ store: new MemoryStore(new MemoryPlace(), true) });
    cleanups.push(() => app.close());
    await fetch(`${app.url}/observed-work`);
    await app.deferrer.enqueue(Post, 'durable');
    await app.deferrer.idle();
    await until('the durable one', () => app.log.results.includes('durable'));
    expect(app.log.results).toHaveLength(3);
    expect(app.log.results).toEqual(expect.arrayContaining(['sent', 'sent by function', 'durable']));
  });

  it('and stays on disk when the application closes is waited for by nobody', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'perf-closed-'));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const connection = { host: '127.0.0.1', port: 1 };
    const store = bullmqStore({ connection, queue: 'none', worker: false, spillPath: folder });
    const app = await start({ store, drainTimeoutMs: 10 });
    await app.deferrer.enqueue(Remember, { result: 1 });
    await app.close();
    expect(app.deferrer.stats().pending).toBe(1);
    await app.deferrer.idle();
    const wait = new Promise((resolve) => setTimeout(resolve, 200));
    // Whose timers they are stands in the stack: other applications of this process have some.
    const original = globalThis.setTimeout;
    const starts: string[] = [];
    const spied = vi.spyOn(globalThis, 'setTimeout').mockImplementation((...given: Parameters<typeof setTimeout>) => {
      starts.push(new Error('timer').stack ?? '');
      return original(...given);
    });
    await wait;
    spied.mockRestore();
    expect(starts.filter((stack) => /[\\/](?:defer|bullmq)[\\/]/.test(stack))).toEqual([]);
  });
});
