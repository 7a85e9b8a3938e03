import { join } from 'node:path';
import { Controller, HttpStatus, Injectable, Post } from '@nestjs/common';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  Deferrer,
  DeferWork,
  DurableWork,
  type DeferContext,
  type DeferOptions,
  type DeferredWork,
} from '../../src/index.js';
import { MemoryPlace, MemoryStore } from '../unit/contract/memory-store.js';
import { type Adapter, either, startApp } from '../fixtures/app.js';
import { temporaryFolder } from '../fixtures/disk.js';
import { until } from '../fixtures/until.js';

let queriesRun = 0;
/** As Prisma, Knex and Mongoose return it: runs when it is awaited, each time anew. */
const lazyQuery = (): PromiseLike<{ id: string }> => ({
  // oxlint-disable-next-line unicorn/no-thenable -- what becomes of it is what is tested
  then: (resolve, reject) => {
    queriesRun += 1;
    return Promise.resolve({ id: `row-${queriesRun}` }).then(resolve, reject);
  },
});

@Injectable()
@DurableWork()
class SendReceipt implements DeferredWork<{ id: string }> {
  readonly sent: string[] = [];
  prepare({ result }: DeferContext<{ id: string }>): { id: string } {
    return { id: result.id };
  }
  run({ id }: { id: string }): void {
    this.sent.push(id);
  }
}

@Controller()
class OrdersController {
  @Post('lazy')
  @DeferWork(SendReceipt)
  lazy() {
    return lazyQuery();
  }
  @Post('lazy-durable')
  @DeferWork(SendReceipt, { durable: true })
  lazyDurable() {
    return lazyQuery();
  }
}

async function start(defer: DeferOptions, adapter: Adapter = 'fastify', eventLoop = true) {
  const running = await startApp(adapter, {
    metadata: { controllers: [OrdersController], providers: [SendReceipt] },
    perf: { defer, eventLoop },
  });
  onTestFinished(() => running.close());
  return { ...running, deferrer: running.app.get(Deferrer), sent: running.app.get(SendReceipt).sent };
}

describe.each(either('express'))('on %s', (adapter) => {
  it.each([
    ['lazy', true],
    ['lazy', false],
    ['lazy-durable', false],
  ])(
    'a lazy query runs once, and its row is deferred: %s, with the event loop watched: %s',
    async (path, eventLoop) => {
      queriesRun = 0;
      const { url, deferrer, sent } = await start(
        { store: new MemoryStore(new MemoryPlace(), true) },
        adapter,
        eventLoop,
      );
      const response = await fetch(`${url}/${path}`, { method: 'POST' });
      expect(await response.json()).toEqual({ id: 'row-1' });
      await deferrer.idle();
      await until('the receipt', () => sent.length === 1);
      expect({ sent, queriesRun }).toEqual({ sent: ['row-1'], queriesRun: 1 });
    },
  );
});

it('overflow `reject` refuses no durable work that the disk has room for', async () => {
  const place = new MemoryPlace();
  place.away = true;
  const store = new MemoryStore(place, true, { path: join(temporaryFolder(), 'spill'), maxBytes: 1024 ** 2 });
  const { url, deferrer, sent } = await start({ store, maxPending: 1, overflow: 'reject' });
  for (let i = 0; i < 5; i++) {
    expect((await fetch(`${url}/lazy-durable`, { method: 'POST' })).status).toBe(HttpStatus.CREATED);
  }
  place.away = false;
  await deferrer.idle();
  await until('all receipts', () => sent.length === 5);
});

it('overflow `reject`: whoever is answered once the disk is full is served later, and all others get 503', async () => {
  const place = new MemoryPlace();
  place.away = true;
  const store = new MemoryStore(place, true, { path: join(temporaryFolder(), 'spill'), maxBytes: 1_000 });
  const { url, deferrer, sent } = await start({ store, maxPending: 2, overflow: 'reject' });
  const post = async (): Promise<HttpStatus> => (await fetch(`${url}/lazy-durable`, { method: 'POST' })).status;
  const statuses = [await post(), await post(), await post()];
  // What is under way when the disk fills up is kept as well.
  statuses.push(...(await Promise.all(Array.from({ length: 20 }, post))), await post());
  const answered = statuses.filter((status) => status === HttpStatus.CREATED).length;
  expect(answered).toBeGreaterThan(2);
  expect(statuses.at(-1)).toBe(HttpStatus.SERVICE_UNAVAILABLE);
  expect(new Set(statuses).size).toBe(2);
  const byHand = (): void => deferrer.defer(SendReceipt, { id: 'by hand' }, { durable: true });
  expect(byHand).toThrow('PERF_ERR_DEFER_FULL');
  place.away = false;
  await deferrer.idle();
  await until('all receipts', () => sent.length === answered);
  expect(deferrer.stats()).toMatchObject({ stored: answered, failed: 0, dropped: 0 });
  expect(await post()).toBe(HttpStatus.CREATED);
});
