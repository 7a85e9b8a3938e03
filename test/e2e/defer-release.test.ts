import { Controller, Get, Post, Req } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type DeferredWork, Deferrer, DeferWork, PerfService } from '../../src/index.js';
import { adapters, startApp, type TestApp } from '../fixtures/app.js';
import { until } from '../fixtures/until.js';

let seen: WeakRef<object>[] = [];
let release = (): void => {};
let gate: Promise<void> = Promise.resolve();

class Receipt implements DeferredWork<{ id: string }> {
  async run(data: { id: string }): Promise<string> {
    await gate;
    return data.id;
  }
}

@Controller('orders')
class OrdersController {
  @Post('class')
  @DeferWork(Receipt)
  byClass(@Req() request: { raw?: object }) {
    seen.push(new WeakRef(request.raw ?? request));
    return { id: 'o-1' };
  }

  @Post('function')
  @DeferWork(({ result }) => gate.then(() => result))
  byFunction(@Req() request: { raw?: object }) {
    seen.push(new WeakRef(request.raw ?? request));
    return { id: 'o-1' };
  }

  @Get()
  list() {
    return [];
  }
}

describe.each(adapters)('work that goes on for long, on %s', (adapter) => {
  let running: TestApp;
  beforeEach(async () => {
    seen = [];
    gate = new Promise((resolve) => (release = resolve));
    running = await startApp(adapter, {
      // The context store, on by default from Node 24 on, holds the request of what runs: any `AsyncLocalStorage` does.
      perf: { context: false },
      metadata: { controllers: [OrdersController], providers: [Receipt] },
    });
  });
  afterEach(() => running.close());

  it.each(['class', 'function'])(
    'as a %s does not keep its request alive: a backlog of work is a backlog of data, not of sockets',
    async (form) => {
      const { app, url } = running;
      for (let i = 0; i < 5; i++) await (await fetch(`${url}/orders/${form}`, { method: 'POST' })).text();
      await until('the work runs', () => app.get(Deferrer).stats().running === 5);
      // Node's parser knows the last request of a connection, and the event loop's accounts that of the last turn.
      await (await fetch(`${url}/orders`)).text();
      await until('the requests are gone', () => {
        globalThis.gc!();
        return seen.filter((request) => request.deref() !== undefined).length === 0;
      });
      expect(app.get(PerfService).snapshot().defer).toMatchObject({ running: 5, completed: 0 });
      release();
      await app.get(Deferrer).idle();
      expect(app.get(Deferrer).stats()).toMatchObject({ completed: 5, failed: 0 });
    },
  );
});
