import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  type NestInterceptor,
  type OnApplicationShutdown,
  type OnModuleInit,
  Param,
  Scope,
  Sse,
  type Type,
  UseInterceptors,
} from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { Queue } from 'bullmq';
import { interval, map, of, retry, timeout, timer } from 'rxjs';
import { afterEach, describe, expect, inject, it } from 'vitest';
import {
  type BatchItem,
  type DeferContext,
  type DeferInfo,
  type DeferOptions,
  type DeferredBatchWork,
  type DeferredWork,
  Deferrer,
  DeferWork,
} from '../../src/index.js';
import { bullmqStore, type BullmqStoreOptions } from '../../src/entries/bullmq.js';
import { settle } from '../../src/entries/testing.js';
import { adapters, startApp, type TestApp } from '../fixtures/app.js';
import { until } from '../fixtures/until.js';

const { hostname, port } = new URL(inject('redisUrl'));
const connection = { host: hostname, port: Number(port) };

@Injectable()
class Log {
  readonly ran: { data: unknown; id: string; attempt: number; traceparent: string | null; requestId: string | null }[] =
    [];
  readonly batches: unknown[][] = [];
  readonly aborted: string[] = [];
  failing = new Set<string>();
  gate: Promise<void> | null = null;
  followUps = 0;
}

@Injectable()
class SendReceipt implements DeferredWork<{ order: string }> {
  constructor(
    @Inject(Log) private readonly log: Log,
    @Inject(Deferrer) private readonly deferrer: Deferrer,
  ) {}
  prepare({ result }: DeferContext<{ order: string }>): { order: string } | undefined {
    return result.order === 'free' ? undefined : result;
  }
  async run(data: { order: string }, info: DeferInfo): Promise<void> {
    const { id, attempt, traceparent = null, requestId } = info;
    this.log.ran.push({ data, id, attempt, traceparent, requestId });
    info.signal.addEventListener('abort', () => this.log.aborted.push(data.order));
    await this.log.gate;
    if (data.order === 'followed') this.deferrer.defer(() => void (this.log.followUps += 1));
    if (attempt === 1 && this.log.failing.has(data.order)) throw new Error(`${data.order} fails`);
  }
}

@Injectable()
class WriteAudit implements DeferredBatchWork<string> {
  private calls = 0;
  constructor(@Inject(Log) private readonly log: Log) {}
  runBatch(items: readonly BatchItem<string>[], { attempt }: DeferInfo): void {
    this.calls += 1;
    this.log.batches.push(items.map(({ data }) => data));
    if (attempt === 1 && items.some(({ data }) => this.log.failing.has(data))) throw new Error('the database is away');
  }
}

@Injectable()
class SendAlways implements DeferredWork {
  constructor(@Inject(Log) private readonly log: Log) {}
  prepare({ error }: DeferContext): string {
    return String(error);
  }
  run(data: unknown, info: DeferInfo): void {
    this.log.ran.push({ data, id: info.id, attempt: info.attempt, traceparent: null, requestId: null });
  }
}

@Injectable({ scope: Scope.REQUEST })
class Unmade implements DeferredWork {
  constructor() {
    throw new Error('no tenant');
  }
  run(): void {}
}

@Injectable({ scope: Scope.REQUEST })
class Scoped implements DeferredWork {
  constructor(
    @Inject(Log) private readonly log: Log,
    @Inject(REQUEST) private readonly request: { url: string } | undefined,
  ) {}
  run(_: unknown, info: DeferInfo): void {
    const copy = { ...info };
    JSON.stringify(info);
    this.log.ran.push({
      data: this.request?.url,
      id: copy.id,
      attempt: copy.attempt,
      traceparent: null,
      requestId: null,
    });
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

@DeferWork(({ request }) => void ((request as { shared?: boolean }).shared = true))
abstract class SharedController {
  @Get('inherited')
  inherited() {
    return 'done';
  }
}
@Controller()
class InheritingController extends SharedController {}

/** Enqueues before anything listens, and after all is closed. */
/** Nest calls it when every module has been told that the application closes. */
@Injectable()
class Closing {
  begun = false;
  beforeApplicationShutdown(): void {
    this.begun = true;
  }
}

@Injectable()
class Eager implements OnModuleInit, OnApplicationShutdown {
  enqueued: unknown = null;
  late: unknown = null;
  constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {}
  async onModuleInit(): Promise<void> {
    this.enqueued = await this.deferrer.enqueue(SendReceipt, { order: 'eager' }).catch((error: unknown) => error);
  }
  async onApplicationShutdown(): Promise<void> {
    this.late = await this.deferrer.enqueue(SendReceipt, { order: 'late' }).catch((error: unknown) => error);
  }
}

@Controller()
class OrdersController {
  private calls = 0;
  constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {}
  @Get('orders/:order')
  @DeferWork(SendReceipt, { attempts: 2, backoffMs: 1 })
  order(@Param('order') order: string) {
    return { order };
  }
  @Get('own/:order')
  own(@Param('order') order: string) {
    this.deferrer.defer(SendReceipt, { order });
    return { order };
  }
  @Get('durable/:order')
  durable(@Param('order') order: string) {
    this.deferrer.defer(SendReceipt, { order }, { durable: true });
    return { order };
  }
  @Get('audit/:name')
  @DeferWork(WriteAudit, { attempts: 2, backoffMs: 1, batch: { maxItems: 10, maxWaitMs: 40 } })
  audit(@Param('name') name: string) {
    return name;
  }
  @Get('unmade')
  async unmade() {
    this.deferrer.defer(Unmade, {});
    await new Promise((resolve) => setTimeout(resolve, 30));
    return 'done';
  }
  @Get('scoped')
  scoped() {
    this.deferrer.defer(Scoped, {});
    return 'done';
  }
  @Get('flaky')
  @UseInterceptors(RetryInterceptor)
  @DeferWork(SendReceipt)
  flaky() {
    this.calls += 1;
    if (this.calls === 1) throw new Error('flaky');
    return { order: 'second' };
  }
  @Get('late')
  @UseInterceptors(GiveUpInterceptor)
  @DeferWork(SendAlways, { when: 'always' })
  late() {
    return timer(5_000).pipe(map(() => ({ order: 'late' })));
  }
  @Get('later')
  @UseInterceptors(GiveUpInterceptor)
  @DeferWork(SendAlways, { when: 'always' })
  async later() {
    await new Promise((resolve) => setTimeout(resolve, 60));
    return of({ order: 'later' });
  }
  @Get('many/:count')
  many(@Param('count') count: string) {
    for (let i = 0; i < Number(count); i++) this.deferrer.defer(SendReceipt, { order: `m-${i}` });
    return count;
  }
  @Sse('stream')
  stream() {
    return interval(20).pipe(map((data) => ({ data })));
  }
}

@Controller()
class DurableController {
  @Get('durable-audit/:name')
  @DeferWork(WriteAudit, { durable: true, attempts: 2, backoffMs: 1, batch: { maxItems: 10, maxWaitMs: 40 } })
  durableAudit(@Param('name') name: string) {
    return name;
  }
}

const ALL = [Log, SendReceipt, WriteAudit, SendAlways, Unmade, Scoped];

describe.each(adapters)('work on %s', (adapter) => {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  });
  function queueName(): string {
    const name = `work-${randomUUID()}`;
    cleanups.push(async () => {
      const queue = new Queue(name, { connection });
      await queue.obliterate({ force: true });
      await queue.close();
    });
    return name;
  }
  async function start(more: DeferOptions = {}, providers: unknown[] = ALL) {
    const controllers: Type[] = providers.includes(SendReceipt) ? [OrdersController] : [];
    if (more.store !== undefined && controllers.length > 0) controllers.push(DurableController);
    const app = await startApp(adapter, {
      metadata: { controllers, providers: providers as never[] },
      perf: { defer: more },
    });
    let closed = false;
    const close = async (): Promise<void> => {
      if (!closed) await app.close();
      closed = true;
    };
    cleanups.push(close);
    return { ...app, close, log: app.app.get(Log), deferrer: app.app.get(Deferrer) };
  }
  const durable = (queue: string, more: Partial<BullmqStoreOptions> = {}): DeferOptions => ({
    store: bullmqStore({ connection, queue, ...more }),
  });
  const get = async ({ url }: TestApp, path: string, headers = {}): Promise<void> => {
    expect((await fetch(`${url}${path}`, { headers })).status).toBe(200);
  };

  it('runs nothing where prepare() declines', async () => {
    const app = await start();
    await get(app, '/orders/free');
    await get(app, '/orders/o-1');
    await app.deferrer.idle();
    expect(app.log.ran.map(({ data }) => data)).toEqual([{ order: 'o-1' }]);
    expect(app.deferrer.stats()).toMatchObject({ accepted: 1, completed: 1 });
  });

  it.each([true, false])(
    'runs once a request with the decorator on a request-scoped class, above @Controller(): %s',
    async (above) => {
      let runs = 0;
      class Scoping {
        scoped() {
          return 'done';
        }
      }
      const handler = Object.getOwnPropertyDescriptor(Scoping.prototype, 'scoped')!;
      Get('scoped')(Scoping.prototype, 'scoped', handler);
      const decorators = [Controller({ scope: Scope.REQUEST }), DeferWork(() => void (runs += 1))];
      for (const decorate of above ? decorators : decorators.toReversed()) decorate(Scoping);
      const app = await startApp(adapter, { metadata: { controllers: [Scoping] } });
      cleanups.push(() => app.app.close());
      expect((await fetch(`${app.url}/scoped`)).status).toBe(200);
      await app.app.get(Deferrer).idle();
      expect(runs).toBe(1);
    },
  );

  it('gives back the room of what prepare() declined', async () => {
    const app = await start({ maxPending: 1, overflow: 'reject' });
    for (let i = 0; i < 5; i++) await get(app, '/orders/free');
  });

  it('drop-old: keeps the newest of what one request defers', async () => {
    const app = await start({ maxPending: 3, overflow: 'drop-old' });
    await get(app, '/many/7');
    await app.deferrer.idle();
    expect(app.log.ran.map(({ data }) => (data as { order: string }).order)).toEqual(['m-4', 'm-5', 'm-6']);
    expect(app.deferrer.stats()).toMatchObject({ accepted: 7, completed: 3, dropped: 4, pending: 0 });
  });

  it('counts what waits for its next attempt as waiting: a dead downstream does not fill the memory', async () => {
    const app = await start({ maxPending: 5 });
    const fails = (): never => {
      throw new Error('the downstream is dead');
    };
    for (let i = 0; i < 40; i++) {
      app.deferrer.defer(fails, { attempts: 10, backoffMs: 60_000 });
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(app.deferrer.stats().pending).toBeLessThan(15);
    expect(app.deferrer.stats().dropped).toBeGreaterThan(20);
  });

  it('tells each attempt the same id, and the trace of its request', async () => {
    const app = await start();
    app.log.failing.add('o-1');
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    await get(app, '/orders/o-1', { traceparent });
    await app.deferrer.idle();
    const [first, second] = app.log.ran;
    expect([first!.attempt, second!.attempt]).toEqual([1, 2]);
    expect(first!.id).toMatch(/.+/);
    expect(second).toMatchObject({ id: first!.id, traceparent });
  });

  it('starts from any code: in a request after its response, elsewhere on the next turn', async () => {
    const app = await start();
    await get(app, '/own/o-1', { 'x-request-id': 'r-1' });
    await app.deferrer.idle();
    app.deferrer.defer(SendReceipt, { order: 'o-2' }, { id: 'mine' });
    expect(app.log.ran).toHaveLength(1);
    await app.deferrer.idle();
    expect(app.log.ran).toMatchObject([
      { data: { order: 'o-1' }, requestId: 'r-1' },
      { data: { order: 'o-2' }, requestId: null, id: 'mine' },
    ]);
  });

  it.each([
    [
      'a class that no module provides',
      () => [
        class Other {
          run() {}
        },
        {},
      ],
      'PERF_ERR_DEFER_WORK: "deferrer.defer()" defers to Other',
    ],
    [
      'durable work without a store',
      () => [SendReceipt, {}, { durable: true }],
      'PERF_ERR_STORE: deferrer.defer() of SendReceipt is durable',
    ],
    [
      'a delay without a store',
      () => [SendReceipt, {}, { delayMs: 5 }],
      'PERF_ERR_OPTION: `deferrer.defer().delayMs` must go with',
    ],
    ['no work at all', () => [7], 'PERF_ERR_OPTION: `deferrer.defer()` takes a function or a class'],
  ])('says what is wrong with %s', async (_, parameters, message) => {
    const { deferrer } = await start();
    const [work, data, options] = parameters() as [typeof SendReceipt, { order: string }, object];
    expect(() => deferrer.defer(work, data, options)).toThrow(message);
  });

  it('collects the items of many requests for runBatch(), and tries a batch that failed again', async () => {
    const app = await start();
    app.log.failing.add('n-3');
    const names = Array.from({ length: 25 }, (_, i) => `n-${i}`);
    await Promise.all(names.map((name) => get(app, `/audit/${name}`)));
    await app.deferrer.idle();
    expect(new Set(app.log.batches.flat())).toEqual(new Set(names));
    expect(app.log.batches.length).toBeLessThan(15);
    expect(Math.max(...app.log.batches.map(({ length }) => length))).toBeLessThanOrEqual(10);
    expect(app.log.batches.filter((batch) => batch.includes('n-3'))).toHaveLength(2);
    expect(app.deferrer.stats()).toMatchObject({ accepted: 25, completed: 25, failed: 0, pending: 0, running: 0 });
  });

  it('waits before a batch is tried again, whatever comes meanwhile', async () => {
    const app = await start();
    app.log.failing.add('bad');
    const options = { attempts: 2, backoffMs: 60_000, batch: { maxWaitMs: 1 } };
    app.deferrer.defer(WriteAudit, 'bad', options);
    await until('the first attempt', () => app.log.batches.length === 1);
    for (let i = 0; i < 5; i++) {
      app.deferrer.defer(WriteAudit, `n-${i}`, options);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(app.log.batches).toEqual([['bad']]);
    await app.close();
    expect((app.log.batches.flat() as string[]).toSorted()).toEqual(['bad', 'bad', 'n-0', 'n-1', 'n-2', 'n-3', 'n-4']);
  });

  it('survives work that cannot be made, and counts it as failed', async () => {
    const app = await start();
    const unhandled: unknown[] = [];
    const listener = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', listener);
    cleanups.push(() => process.off('unhandledRejection', listener));
    await get(app, '/unmade');
    await app.deferrer.idle();
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).toEqual([]);
    expect(app.deferrer.stats()).toMatchObject({ accepted: 1, failed: 1 });
  });

  it('gives request-scoped work its request, and info as a plain object', async () => {
    const app = await start();
    await get(app, '/scoped');
    await app.deferrer.idle();
    expect(app.log.ran).toMatchObject([{ data: '/scoped', attempt: 1 }]);
    expect(app.log.ran[0]!.id).toMatch(/.+/);
  });

  it('runs once where an interceptor tries the handler again, with what came of it at last', async () => {
    const app = await start();
    await get(app, '/flaky');
    await app.deferrer.idle();
    expect(app.log.ran.map(({ data }) => data)).toEqual([{ order: 'second' }]);
  });

  it.each(['late', 'later'])('runs where an interceptor has given up an observable that comes %s', async (path) => {
    const app = await start({ maxPending: 1, overflow: 'reject' });
    for (let i = 1; i <= 3; i++) {
      const { status } = await fetch(`${app.url}/${path}`);
      expect(status).toBe(500);
      await until('it to run', () => app.log.ran.length === i);
      await app.deferrer.idle();
    }
    expect(app.log.ran).toHaveLength(3);
  });

  it('on an inherited controller boots, and is reached by what it inherits', async () => {
    const app = await startApp(adapter, { metadata: { controllers: [InheritingController] } });
    cleanups.push(() => app.close());
    await get(app, '/inherited');
    await app.app.get(Deferrer).idle();
    expect(app.app.get(Deferrer).stats()).toMatchObject({ accepted: 1, completed: 1 });
  });

  it('finishes a batch that still collects when the application closes', async () => {
    const app = await start();
    await get(app, '/audit/last');
    await app.close();
    expect(app.log.batches).toEqual([['last']]);
  });

  it('stores work durably at once from any code, and resolves when Redis has it', async () => {
    const name = queueName();
    const app = await start(durable(name, { worker: false }));
    const { id } = await app.deferrer.enqueue(
      SendReceipt,
      { order: 'o-1' },
      { delayMs: 60_000, priority: 3, name: 'receipt' },
    );
    const queue = new Queue(name, { connection });
    cleanups.push(() => queue.close());
    const job = await queue.getJob(id);
    expect(job).toMatchObject({ name: 'receipt', opts: { delay: 60_000, priority: 3 } });
    expect(app.deferrer.stats()).toMatchObject({ accepted: 1, stored: 1 });
  });

  it.each([true, false])(
    'stores from onModuleInit on, and says so when all is closed (with a spill: %s)',
    async (spill) => {
      const folder = mkdtempSync(join(tmpdir(), 'perf-eager-'));
      cleanups.push(() => rmSync(folder, { recursive: true }));
      const app = await start(durable(queueName(), spill ? { spillPath: folder } : {}), [...ALL, Eager]);
      expect(app.app.get(Eager).enqueued).toMatchObject({ id: expect.any(String) });
      await until('it to run', () => app.log.ran.length === 1);
      await app.close();
      expect(app.app.get(Eager).late).toMatchObject({ code: 'PERF_ERR_STORE' });
    },
  );

  it('with a spill, is idle only once it is stored, and leaves nothing on disk, also when an id comes twice', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'perf-twice-'));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const app = await start({ ...durable(queueName(), { worker: false, spillPath: folder }), maxPending: 1 });
    for (let i = 0; i < 4; i++) void app.deferrer.enqueue(SendReceipt, { order: 'o' }, { id: 'daily' });
    app.deferrer.defer(SendReceipt, { order: 'o' }, { durable: true });
    await app.deferrer.idle();
    expect(app.deferrer.stats()).toMatchObject({ accepted: 5, stored: 5, pending: 0 });
    await until('the disk to be empty', () => readdirSync(folder).every((name) => name.endsWith('.lock')));
  });

  it.each(['drop-new', 'reject'] as const)('a full spill and full memory, overflow %s', async (overflow) => {
    const folder = mkdtempSync(join(tmpdir(), 'perf-full-'));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const store = bullmqStore({
      connection: { host: '127.0.0.1', port: 1 },
      queue: 'none',
      worker: false,
      spillPath: folder,
      spillMaxBytes: 1,
    });
    const app = await start({ store, maxPending: 1, overflow, drainTimeoutMs: 10 });
    const deferOne = (): void => app.deferrer.defer(SendReceipt, { order: 'o' }, { durable: true });
    deferOne();
    await until('the disk to answer', () => app.deferrer.stats().accepted === 1);
    if (overflow === 'reject') {
      expect(deferOne).toThrow('PERF_ERR_DEFER_FULL');
      expect(app.deferrer.stats()).toMatchObject({ accepted: 1, failed: 0, pending: 1 });
      return;
    }
    deferOne();
    await until('the disk to answer', () => app.deferrer.stats().accepted === 2);
    expect(app.deferrer.stats()).toMatchObject({ accepted: 2, dropped: 1, pending: 1 });
  });

  it.each(['order-7', '42', 'order:7'])('takes the same id twice for one job: %s', async (id) => {
    const app = await start(durable(queueName()));
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push((await app.deferrer.enqueue(SendReceipt, { order: `o-${i}` }, { id })).id);
    await app.deferrer.enqueue(SendReceipt, { order: 'last' });
    await until('the last to run', () => app.log.ran.some(({ data }) => (data as { order: string }).order === 'last'));
    expect(ids).toEqual([id, id, id]);
    expect(app.log.ran.filter((ran) => ran.id === id)).toHaveLength(1);
  });

  it('says what is wrong when durable work cannot be started', async () => {
    const without = await start();
    await expect(without.deferrer.enqueue(SendReceipt, { order: 'o' })).rejects.toThrow(
      'PERF_ERR_STORE: deferrer.enqueue() of SendReceipt is durable',
    );
    const app = await start(durable(queueName(), { worker: false }));
    await expect(app.deferrer.enqueue(SendReceipt, { order: 1n } as never)).rejects.toThrow('PERF_ERR_SERIALIZE');
    await expect(app.deferrer.enqueue((() => {}) as never, {})).rejects.toThrow(
      'PERF_ERR_OPTION: `deferrer.enqueue()` takes a class',
    );
    for (const options of [{ id: '' }, { priority: 2_097_152 }]) {
      await expect(app.deferrer.enqueue(SendReceipt, { order: 'o' }, options)).rejects.toThrow('PERF_ERR_OPTION');
    }
    await app.deferrer.enqueue(SendReceipt, { order: 'o' }, { priority: 2_097_151 });
  });

  it('stores what a service starts in a request after its response', async () => {
    const app = await start(durable(queueName()));
    await get(app, '/durable/o-1', { 'x-request-id': 'r-1' });
    await until('it to run', () => app.log.ran.length === 1);
    expect(app.log.ran).toMatchObject([{ data: { order: 'o-1' }, requestId: 'r-1' }]);
    await settle(app.app);
    const [record] = app.sink.records.filter(({ kind }) => kind === 'deferred');
    expect(record).toMatchObject({ route: '/durable/:order', durable: true, outcome: 'completed', requestId: 'r-1' });
    expect((record as { at: number }).at).toBeGreaterThan(Date.now() - 60_000);
  });

  it('carries durable items to runBatch() together', async () => {
    const app = await start(durable(queueName()));
    app.log.failing.add('n-3');
    const names = Array.from({ length: 20 }, (_, i) => `n-${i}`);
    await Promise.all(names.map((name) => get(app, `/durable-audit/${name}`)));
    await until('all', () => new Set(app.log.batches.flat()).size === 20);
    await until('the batch that failed', () => app.log.batches.filter((batch) => batch.includes('n-3')).length === 2);
    expect(app.log.batches.length).toBeLessThan(12);
  });

  it('gives work a queue of its own, which anybody can look into', async () => {
    const [name, mail] = [queueName(), queueName()];
    const store = bullmqStore({
      connection,
      queue: name,
      queues: { [mail]: { concurrency: 1, limiter: { max: 100, duration: 1_000 } } },
    });
    expect(() => store.queue()).toThrow('PERF_ERR_STORE: `store.queue()` works once the application has booted');
    const app = await start({ store });
    await app.deferrer.enqueue(SendReceipt, { order: 'o-1' }, { queue: mail });
    await until('it to run', () => app.log.ran.length === 1);
    expect(store.queue(mail).name).toBe(mail);
    await until('it to be done', async () => (await store.queue(mail).getCompletedCount()) === 1);
    expect(await store.queue().getJobCounts()).toMatchObject({ completed: 0, waiting: 0 });
  });

  it('leaves work of a class that it does not know to others, without burning an attempt', async () => {
    const name = queueName();
    const older = await start(durable(name), [Log]);
    const newer = await start(durable(name, { worker: false }));
    await newer.deferrer.enqueue(SendReceipt, { order: 'o-1' });
    const queue = new Queue(name, { connection });
    cleanups.push(() => queue.close());
    await until('it to be put back', async () => (await queue.getDelayedCount()) === 1);
    await older.close();
    const knowing = await start(durable(name));
    // While it is only offered to others it is due by itself.
    for (const job of await queue.getDelayed()) await job.promote().catch(() => {});
    await until('it to run', () => knowing.log.ran.length === 1);
    expect(knowing.log.ran).toMatchObject([{ data: { order: 'o-1' }, attempt: 1 }]);
  });

  it('counts the failures of its worker', async () => {
    const app = await start(durable(queueName()));
    app.log.failing.add('o-1');
    await app.deferrer.enqueue(SendReceipt, { order: 'o-1' });
    await until('the failure to be counted', () => app.deferrer.stats().failed === 1);
    await app.deferrer.enqueue(SendReceipt, { order: 'o-1' }, { attempts: 2, backoffMs: 1 });
    await until('the second attempt', () => app.log.ran.length === 3);
    expect(app.deferrer.stats()).toMatchObject({ accepted: 3, completed: 2, failed: 1 });
  });

  it('takes no new work once the application begins to close, whatever streams are open', async () => {
    const name = queueName();
    const app = await start({ ...durable(name), drainTimeoutMs: 2_000 }, [...ALL, Closing]);
    const leaving = new AbortController();
    const stream = await fetch(`${app.url}/stream`, { signal: leaving.signal });
    await stream.body!.getReader().read();
    const closing = app.close();
    await until('the application to close', () => app.app.get(Closing).begun);
    const queue = new Queue(name, { connection });
    cleanups.push(() => queue.close());
    await queue.add('receipt', {
      work: 'SendReceipt',
      timeoutMs: 1_000,
      data: { order: 'late' },
      requestId: null,
      status: null,
      at: 1,
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(app.log.ran).toEqual([]);
    expect(await queue.getJobCountByTypes('waiting', 'delayed')).toBe(1);
    leaving.abort();
    await closing;
  });

  it('runs what the last durable job has deferred, when the application closes', async () => {
    const app = await start(durable(queueName()));
    let open = (): void => {};
    app.log.gate = new Promise((resolve) => (open = resolve));
    await app.deferrer.enqueue(SendReceipt, { order: 'followed' });
    await until('it to run', () => app.log.ran.length === 1);
    const closing = app.close();
    setTimeout(open, 100);
    await closing;
    expect(app.log.followUps).toBe(1);
  });

  it('gives back what is cut off at every shutdown, and no attempt is counted', async () => {
    const name = queueName();
    for (let deploy = 0; deploy < 3; deploy++) {
      const app = await start({ ...durable(name), drainTimeoutMs: 50 });
      app.log.gate = new Promise(() => {});
      if (deploy === 0) await app.deferrer.enqueue(SendReceipt, { order: 'long' }, { attempts: 2 });
      await until('it to run', () => app.log.ran.length === 1);
      expect(app.log.ran[0]!.attempt).toBe(1);
      await app.close();
    }
  });

  it('aborts what still runs when the deadline of the shutdown has passed', async () => {
    const app = await start({ ...durable(queueName()), drainTimeoutMs: 300 });
    app.log.gate = new Promise(() => {});
    await app.deferrer.enqueue(SendReceipt, { order: 'hangs' });
    await until('it to run', () => app.log.ran.length === 1);
    await app.close();
    expect(app.log.aborted).toEqual(['hangs']);
  });
});
