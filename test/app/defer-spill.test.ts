import { join } from 'node:path';
import { Controller, Inject, Param, Post, Scope } from '@nestjs/common';
import { describe, expect, it, vi } from 'vitest';
import {
  Deferrer,
  DeferWork,
  DurableWork,
  type DeferInfo,
  type DeferredWork,
  type DeferOptions,
} from '../../src/index.js';
import { MemoryPlace, MemoryStore } from '../unit/contract/memory-store.js';
import { either } from '../fixtures/app.js';
import { handlePrototype, temporaryFolder } from '../fixtures/disk.js';
import { spilledIn } from '../fixtures/spilled.js';
import { until } from '../fixtures/until.js';
import { startDeferring } from '../fixtures/works.js';

@DurableWork()
class SendReceipt implements DeferredWork<{ id: string }> {
  readonly sent: { id: string; status: number | null }[] = [];
  run({ id }: { id: string }, { status }: DeferInfo): void {
    this.sent.push({ id, status });
  }
}

@Controller('orders')
class OrdersController {
  @Post(':id')
  @DeferWork(SendReceipt, { durable: true })
  create(@Param('id') id: string) {
    return { id };
  }
}

const byHand = (scope: Scope, path: string) => {
  @Controller({ path, scope })
  class ByHandController {
    constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {}
    @Post(':id')
    create(@Param('id') id: string) {
      this.deferrer.defer(SendReceipt, { id }, { durable: true });
      return {};
    }
  }
  return ByHandController;
};
const controllers = [OrdersController, byHand(Scope.DEFAULT, 'by-hand'), byHand(Scope.REQUEST, 'by-hand-scoped')];

describe.each(either('express'))('durable work with a spill file, on %s', (adapter) => {
  /** A store that is away, and an application with a spill in front of it. */
  async function startAway(more: DeferOptions = {}, worker = true, path = join(temporaryFolder(), 'spill')) {
    const place = new MemoryPlace();
    place.away = true;
    const start = async () => {
      const store = new MemoryStore(place, worker, { path, maxBytes: 1024 ** 3 });
      const running = await startDeferring(adapter, { controllers, providers: [SendReceipt] }, { store, ...more });
      const post = (route: string): Promise<Response> => fetch(`${running.url}/${route}`, { method: 'POST' });
      return { ...running, post, sent: running.app.get(SendReceipt).sent };
    };
    return { ...(await start()), again: start, place, spilled: () => spilledIn(path) };
  }

  it('has the data on disk before the client has its answer, and strikes it off once it is stored', async () => {
    const { post, sent, place, spilled, deferrer } = await startAway();
    await post('orders/o-9');
    expect(spilled().text).toContain('"data":{"id":"o-9"}');
    await until('it to be buffered', () => deferrer.stats().buffered === 1);
    place.away = false;
    await deferrer.idle();
    await until('it to be struck off', () => spilled().ids.length === 0);
    expect(sent).toMatchObject([{ id: 'o-9' }]);
  });

  it.each(['by-hand', 'by-hand-scoped'])(
    'has what a handler defers %s on disk before the client has its answer, however slow the disk is',
    async (route) => {
      const { post, sent, place } = await startAway();
      let synced = false;
      const slow = vi.spyOn(await handlePrototype(), 'datasync').mockImplementation(async () => {
        await new Promise((resolve) => setTimeout(resolve, 200));
        synced = true;
      });
      expect((await post(`${route}/o-9`)).status).toBe(201);
      expect(synced).toBe(true);
      slow.mockRestore();
      place.away = false;
      await until('the receipt', () => sent.length === 1);
      expect(sent).toMatchObject([{ id: 'o-9' }]);
    },
  );

  it('keeps on disk what memory cannot hold, and loses nothing', async () => {
    const { post, sent, place, spilled, deferrer } = await startAway({ maxPending: 5 });
    const ids = Array.from({ length: 40 }, (_, i) => `o-${i}`);
    await Promise.all(ids.map((id) => post(`orders/${id}`)));
    await until('all to be buffered', () => deferrer.stats().buffered === 40);
    expect(deferrer.stats()).toMatchObject({ accepted: 40, dropped: 0 });
    place.away = false;
    await deferrer.idle();
    await until('all receipts', () => sent.length === 40);
    expect(sent.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    await until('all to be struck off', () => spilled().ids.length === 0);
  });

  it('leaves on disk what cannot be stored at shutdown, and sends it at the next start under the same id', async () => {
    const { post, place, spilled, close, again } = await startAway({ drainTimeoutMs: 50 });
    await Promise.all(['a', 'b'].map((id) => post(`orders/${id}`)));
    await close();
    const { ids } = spilled();
    expect(ids).toHaveLength(2);
    place.away = false;
    const { sent } = await again();
    await until('both receipts', () => sent.length === 2);
    expect([...place.known].toSorted()).toEqual(ids.toSorted());
    expect(sent.map(({ status }) => status)).toEqual([null, null]);
    await until('both to be struck off', () => spilled().ids.length === 0);
  });
});
