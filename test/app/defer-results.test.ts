import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  type NestInterceptor,
  Req,
  Sse,
  UseInterceptors,
} from '@nestjs/common';
import { defer, finalize, interval, map, of, retry, take, timeout, timer } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { type DeferContext, type DeferredWork, type DeferOptions, DeferWork, DurableWork } from '../../src/index.js';
import { bullmqStore } from '../../src/entries/bullmq.js';
import { MemoryPlace, MemoryStore } from '../unit/contract/memory-store.js';
import { either } from '../fixtures/app.js';
import { temporaryFolder } from '../fixtures/disk.js';
import { until } from '../fixtures/until.js';
import { startDeferring } from '../fixtures/works.js';

@Injectable()
class Log {
  readonly results: unknown[] = [];
}

@Injectable()
@DurableWork()
class Remember implements DeferredWork<{ result: unknown }> {
  constructor(@Inject(Log) private readonly log: Log) {}
  prepare({ result }: DeferContext): { result: unknown } {
    return { result };
  }
  run({ result }: { result: unknown }): void {
    this.log.results.push(result);
  }
}

/** Of a row, the state in which the handler has left it. */
@Injectable()
class RememberState extends Remember {
  override prepare({ result }: DeferContext): { result: unknown } {
    return { result: (result as { state: string }).state };
  }
}

@Injectable()
@DurableWork()
class Post implements DeferredWork<string> {
  constructor(@Inject(Log) private readonly log: Log) {}
  /** As HttpService of @nestjs/axios: nothing happens before it is subscribed to. */
  run(what: string) {
    return defer(() => of(this.log.results.push(what)));
  }
}

@Injectable()
class RetryInterceptor implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(retry(1));
  }
}

@Injectable()
class GiveUpInterceptor implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler) {
    return next.handle().pipe(timeout(20));
  }
}

const logOf = (request: unknown): Log => (request as { log: Log }).log;

@Controller()
class ResultsController {
  private calls = 0;
  constructor(@Inject(Log) private readonly log: Log) {}
  @Get('observed-work')
  @DeferWork(Post)
  @DeferWork(({ result, request }) => defer(() => of(logOf(request).results.push(`${result} by function`))))
  observedWork(@Req() request: object) {
    Object.assign(request, { log: this.log });
    return 'sent';
  }
  @Get('row')
  @DeferWork(RememberState)
  row() {
    const row = { state: 'open' };
    return of(row).pipe(finalize(() => (row.state = 'committed')));
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
  @Get('flaky')
  @UseInterceptors(RetryInterceptor)
  @DeferWork(Remember)
  flaky() {
    this.calls += 1;
    if (this.calls === 1) throw new Error('flaky');
    return 'second';
  }
  @Get('late')
  @UseInterceptors(GiveUpInterceptor)
  @DeferWork(Remember, { when: 'always' })
  late() {
    return timer(5_000).pipe(map(() => 'late'));
  }
}

describe.each(either('fastify'))('what a handler returns, on %s', (adapter) => {
  async function start(defer: DeferOptions = {}) {
    const metadata = { controllers: [ResultsController], providers: [Log, Remember, RememberState, Post] };
    const running = await startDeferring(adapter, metadata, defer);
    return { ...running, log: running.app.get(Log) };
  }

  it('as the promise of an observable is its last value', async () => {
    const app = await start();
    expect(await (await fetch(`${app.url}/promised`)).text()).toBe('2');
    await app.deferrer.idle();
    expect(app.log.results).toEqual([2]);
  });

  it('as an observable is looked at when that is over, and its own `finalize()` has run', async () => {
    const app = await start();
    await fetch(`${app.url}/row`);
    await app.deferrer.idle();
    expect(app.log.results).toEqual(['committed']);
  });

  it('as the promise of server-sent events is no result', async () => {
    const app = await start();
    expect(await (await fetch(`${app.url}/events`)).text()).toContain('data: 1');
    await app.deferrer.idle();
    expect(app.log.results).toEqual([undefined]);
  });

  it('work that returns an observable is done when that completes', async () => {
    const app = await start({ store: new MemoryStore(new MemoryPlace(), true) });
    await fetch(`${app.url}/observed-work`);
    await app.deferrer.enqueue(Post, 'durable');
    await app.deferrer.idle();
    await until('the durable one', () => app.log.results.includes('durable'));
    expect(app.log.results).toHaveLength(3);
    expect(app.log.results).toEqual(expect.arrayContaining(['sent', 'sent by function', 'durable']));
  });

  it('and stays on disk when the application closes is waited for by nobody', async () => {
    const connection = { host: '127.0.0.1', port: 1 };
    const store = bullmqStore({ connection, queue: 'none', worker: false, spillPath: temporaryFolder() });
    const app = await start({ store, drainTimeoutMs: 10 });
    await app.deferrer.enqueue(Remember, { result: 1 });
    await app.close();
    expect(app.deferrer.stats().pending).toBe(1);
    await app.deferrer.idle();
    const wait = new Promise((resolve) => setTimeout(resolve, 200));
    // The stack names the code that starts a timer: BullMQ's own may be of an application that an earlier suite has left.
    const original = globalThis.setTimeout;
    const starts: string[] = [];
    const spied = vi.spyOn(globalThis, 'setTimeout').mockImplementation((...given: Parameters<typeof setTimeout>) => {
      starts.push(new Error('timer').stack ?? '');
      return original(...given);
    });
    await wait;
    spied.mockRestore();
    expect(starts.filter((stack) => /[\\/]src[\\/](?:defer|entries)[\\/]/.test(stack))).toEqual([]);
  });

  it('of a handler that an interceptor has tried again is that of the last call, and work runs once', async () => {
    const app = await start();
    await fetch(`${app.url}/flaky`);
    await app.deferrer.idle();
    expect(app.log.results).toEqual(['second']);
  });

  it('an observable that an interceptor gives up has failed: `always` runs', async () => {
    const app = await start();
    expect((await fetch(`${app.url}/late`)).status).toBe(500);
    await until('its work to run', () => app.log.results.length === 1);
    await app.deferrer.idle();
    expect(app.log.results).toEqual([undefined]);
  });
});
