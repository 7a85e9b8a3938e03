import { join } from 'node:path';
import { Controller, Injectable, Param, Post } from '@nestjs/common';
import { expect, it, onTestFinished, vi } from 'vitest';
import { Deferrer, DeferWork, DurableWork, type DeferOverflow, type DeferredWork } from '../../src/index.js';
import { MemoryPlace, MemoryStore } from '../unit/contract/memory-store.js';
import { adapters, startApp, type Adapter } from '../fixtures/app.js';
import { handlePrototype, temporaryFolder } from '../fixtures/disk.js';

@Injectable()
@DurableWork()
class SendReceipt implements DeferredWork<{ id: string }> {
  run(): void {}
}

@Controller('orders')
class OrdersController {
  @Post(':id')
  @DeferWork(SendReceipt, { durable: true })
  create(@Param('id') id: string) {
    return { id };
  }
}

async function start(adapter: Adapter, overflow: DeferOverflow) {
  const place = new MemoryPlace();
  const path = join(temporaryFolder(), 'spill');
  const store = new MemoryStore(place, false, { path, maxBytes: 1024 ** 2, writeTimeoutMs: 2_000 });
  const app = await startApp(adapter, {
    metadata: { controllers: [OrdersController], providers: [SendReceipt] },
    perf: { defer: { store, overflow, drainTimeoutMs: 500 } },
  });
  onTestFinished(() => app.close());
  const post = async (id: string): Promise<number> =>
    (await fetch(`${app.url}/orders/${id}`, { method: 'POST' })).status;
  return { app, place, post, deferrer: app.app.get(Deferrer) };
}

it.each(adapters.flatMap((adapter) => [[adapter, 'reject', 503] as const, [adapter, 'drop-new', 201] as const]))(
  'a disk that hangs, on %s with overflow `%s`: every request is answered with %d, and app.close() ends',
  async (adapter, overflow, status) => {
    const { app, place, post, deferrer } = await start(adapter, overflow);
    expect(await post('before')).toBe(201);
    const hang = vi.spyOn(await handlePrototype(), 'datasync').mockImplementation(() => new Promise(() => {}));
    onTestFinished(() => hang.mockRestore());
    expect(await Promise.all(['a', 'b', 'c'].map(post))).toEqual([status, status, status]);
    expect(await post('later')).toBe(status);
    await deferrer.idle();
    expect(place.known.size).toBe(status === 201 ? 5 : 1);
    await app.close();
  },
);
