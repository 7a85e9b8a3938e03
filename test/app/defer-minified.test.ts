import { runInThisContext } from 'node:vm';
import { Controller, Logger, Post } from '@nestjs/common';
import { expect, it, vi } from 'vitest';
import { DeferWork, DurableWork, type DeferredWork } from '../../src/index.js';
import { MemoryPlace, MemoryStore } from '../unit/contract/memory-store.js';
import { startApp } from '../fixtures/app.js';

/** As a minifier writes it. */
const w = runInThisContext('(class w{run(){}})') as new () => DeferredWork;

DurableWork()(w);

@Controller('orders')
class OrdersController {
  @Post()
  @DeferWork(w, { durable: true })
  create() {
    return {};
  }
}

it('durable work of a class that a minifier has named: the log says what the next build does', async () => {
  const warned = vi.spyOn(Logger.prototype, 'warn');
  const app = await startApp('fastify', {
    perf: { defer: { store: new MemoryStore(new MemoryPlace(), true) } },
    metadata: { controllers: [OrdersController], providers: [w] },
  });
  await app.close();
  const said = 'durable work of a class named "w" carries a name that a minifier has made: after the next build';
  expect(warned.mock.calls.filter(([message]) => String(message).startsWith(said))).toHaveLength(1);
  warned.mockRestore();
});
