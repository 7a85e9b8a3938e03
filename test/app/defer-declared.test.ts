import { ConflictException, Controller, Inject, Injectable, Param, Post, type Type } from '@nestjs/common';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  DeferWork,
  Deferrer,
  DurableWork,
  type DeferInfo,
  type DeferredWork,
  type DeferWorkOptions,
  type DeferOptions,
  type EnqueueOptions,
} from '../../src/index.js';
import { bullmqStore } from '../../src/entries/bullmq.js';
import { MemoryPlace, MemoryStore } from '../unit/contract/memory-store.js';
import { startApp } from '../fixtures/app.js';
import { connection, queueName, queueNamed } from '../fixtures/redis.js';
import { until } from '../fixtures/until.js';

@Injectable()
class Undeclared implements DeferredWork<{ id: string }> {
  static readonly ran: unknown[] = [];
  run(data: unknown): void {
    Undeclared.ran.push(data);
  }
}

@Injectable()
@DurableWork('send-receipt', { attempts: 3, backoffMs: 1, timeoutMs: 5_000, durable: true })
class SendReceipt implements DeferredWork<{ id: string }> {
  readonly ran: { data: unknown; attempt: number }[] = [];
  run(data: { id: string }, { attempt }: DeferInfo): void {
    this.ran.push({ data, attempt });
    if (attempt < 3) throw new Error('once more');
  }
}

function controllerOf(work: Type<DeferredWork>, options?: DeferWorkOptions): Type {
  @Controller('orders')
  class OrdersController {
    @Post()
    @DeferWork(work, options)
    create() {
      return { id: 'o-1' };
    }
  }
  return OrdersController;
}

const start = (defer: DeferOptions, controllers: Type[] = []) =>
  startApp('fastify', { perf: { defer }, metadata: { controllers, providers: [Undeclared, SendReceipt] } });
const memory = (place = new MemoryPlace(), worker = true) => ({ store: new MemoryStore(place, worker) });
const LINE =
  "Add the line `@DurableWork('undeclared')` above `class Undeclared`, with `import { DurableWork } from 'nestjs-perf'`.";

describe('@DurableWork()', () => {
  it('a class that a handler uses durably without it stops the boot, with the line to add', async () => {
    const booting = start(memory(), [controllerOf(Undeclared, { durable: true })]);
    const message = await booting.then(
      () => 'booted',
      (error: unknown) => String(error),
    );
    expect(message).toContain('PERF_ERR_DEFER_WORK');
    expect(message).toContain('"OrdersController.create" defers durable work to Undeclared');
    expect(message).toContain(LINE);
  });

  it('enqueue() and defer() of such a class say the same', async () => {
    const app = await start(memory());
    const deferrer = app.app.get(Deferrer);
    await expect(deferrer.enqueue(Undeclared, { id: 'a' })).rejects.toThrow(LINE);
    expect(() => deferrer.defer(Undeclared, { id: 'a' }, { durable: true })).toThrow(LINE);
    deferrer.defer(Undeclared, { id: 'in this process' });
    await deferrer.idle();
    expect(Undeclared.ran).toEqual([{ id: 'in this process' }]);
    await app.close();
  });

  it("gives jobs its name and its options, which a use's own override", async () => {
    const place = new MemoryPlace();
    const app = await start(memory(place, false), [controllerOf(SendReceipt, { timeoutMs: 7_000 })]);
    const deferrer = app.app.get(Deferrer);
    await fetch(`${app.url}/orders`, { method: 'POST' });
    await deferrer.enqueue(SendReceipt, { id: 'b' });
    await deferrer.enqueue(SendReceipt, { id: 'c' }, { attempts: 1, name: 'receipt' });
    await deferrer.idle();
    const common = { work: 'send-receipt', name: 'send-receipt', attempts: 3 };
    expect(place.waiting.map(({ items }) => items[0])).toMatchObject([
      { ...common, timeoutMs: 7_000 },
      { ...common, timeoutMs: 5_000 },
      { work: 'send-receipt', name: 'receipt', attempts: 1 },
    ]);
    await app.close();
  });

  it('gives defer() its `when`, which a call cannot have', async () => {
    @Injectable()
    @DurableWork('tell', { when: 'error' })
    class Tell implements DeferredWork<string> {
      readonly told: string[] = [];
      run(what: string): void {
        this.told.push(what);
      }
    }
    @Controller('orders')
    class OrdersController {
      constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {}
      @Post(':status')
      create(@Param('status') status: string) {
        this.deferrer.defer(Tell, status);
        if (status === '409') throw new ConflictException();
      }
    }
    const app = await startApp('fastify', { metadata: { controllers: [OrdersController], providers: [Tell] } });
    onTestFinished(() => app.close());
    for (const status of ['201', '409']) await fetch(`${app.url}/orders/${status}`, { method: 'POST' });
    const deferrer = app.app.get(Deferrer);
    await deferrer.idle();
    expect(app.app.get(Tell).told).toEqual(['409']);
    const options = { when: 'always' } as EnqueueOptions;
    expect(() => deferrer.defer(Tell, 'x', options)).toThrow('`deferrer.defer().when` is not an option');
    await expect(deferrer.enqueue(Tell, 'x', options)).rejects.toThrow('`deferrer.enqueue().when` is not an option');
  });

  it('runs a job of its name on Redis, and no other provider with a run method', async () => {
    Undeclared.ran.length = 0;
    const queue = queueName();
    const app = await start({ store: bullmqStore({ connection, queue }) });
    const foreign = queueNamed(queue);
    const names = ['Undeclared', 'undeclared', '__proto__', 'constructor', 'Object', 'ModuleRef', 'PerfService'];
    for (const work of names) await foreign.add(work, { work, timeoutMs: 1_000, data: { id: 'tampered' } });
    await app.app.get(Deferrer).enqueue(SendReceipt, { id: 'c' });
    const { ran } = app.app.get(SendReceipt);
    await until('the declared one to run', () => ran.length === 3);
    await until('the others to be put back', async () => {
      const left = await foreign.getJobs(['waiting', 'delayed', 'active']);
      return left.length === names.length && left.every((job) => 'unknownSinceMs' in (job.data as object));
    });
    expect(Undeclared.ran).toEqual([]);
    await app.close();
  });

  it('refuses what is no name, and options that are none', () => {
    expect(() => DurableWork(7 as never)(SendReceipt)).toThrow('PERF_ERR_DECORATOR: @DurableWork on "SendReceipt"');
    expect(() => DurableWork('')(SendReceipt)).toThrow('PERF_ERR_DECORATOR');
    expect(() => DurableWork('x', { attempts: 0 })(SendReceipt)).toThrow('`SendReceipt @DurableWork.attempts`');
    expect(() => DurableWork()(class {})).toThrow('without a name');
  });
});
