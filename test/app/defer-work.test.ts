import { Controller, Get, Inject, Injectable, Param, Scope } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type DeferInfo, type DeferOptions, type DeferredWork, Deferrer, DeferWork } from '../../src/index.js';
import { either, type TestApp } from '../fixtures/app.js';
import { SendReceipt, startDeferring, WorkLog, WriteAudit } from '../fixtures/works.js';

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
    @Inject(WorkLog) private readonly log: WorkLog,
    @Inject(REQUEST) private readonly request: { url: string } | undefined,
  ) {}
  run(_: unknown, info: DeferInfo): void {
    JSON.stringify(info);
    this.log.keep(this.request?.url, { ...info });
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

@Controller()
class OrdersController {
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
  @Get('many/:count')
  many(@Param('count') count: string) {
    for (let i = 0; i < Number(count); i++) this.deferrer.defer(SendReceipt, { order: `m-${i}` });
    return count;
  }
}

const metadata = {
  controllers: [OrdersController],
  providers: [WorkLog, SendReceipt, WriteAudit, Unmade, Scoped],
};

describe.each(either('express'))('work on %s', (adapter) => {
  async function start(defer: DeferOptions = {}) {
    const running = await startDeferring(adapter, metadata, defer);
    return { ...running, log: running.app.get(WorkLog) };
  }
  const get = async ({ url }: TestApp, path: string, headers = {}): Promise<void> => {
    expect((await fetch(`${url}${path}`, { headers })).status).toBe(200);
  };

  it('runs nothing where prepare() declines, and gives its room back', async () => {
    const app = await start({ maxPending: 1, overflow: 'reject' });
    for (let i = 0; i < 5; i++) await get(app, '/orders/free');
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
      const app = await startDeferring(adapter, { controllers: [Scoping] });
      await get(app, '/scoped');
      await app.deferrer.idle();
      expect(runs).toBe(1);
    },
  );

  it('drop-old: keeps the newest of what one request defers', async () => {
    const app = await start({ maxPending: 3, overflow: 'drop-old' });
    await get(app, '/many/7');
    await app.deferrer.idle();
    expect(app.log.ran.map(({ data }) => (data as { order: string }).order)).toEqual(['m-4', 'm-5', 'm-6']);
    expect(app.deferrer.stats()).toMatchObject({ accepted: 7, completed: 3, dropped: 4, pending: 0 });
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

  it('survives work that cannot be made, and counts it as failed', async () => {
    const app = await start();
    const unhandled: unknown[] = [];
    const listener = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', listener);
    onTestFinished(() => void process.off('unhandledRejection', listener));
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

  it('on an inherited controller boots, and is reached by what it inherits', async () => {
    const app = await startDeferring(adapter, { controllers: [InheritingController] });
    await get(app, '/inherited');
    await app.deferrer.idle();
    expect(app.deferrer.stats()).toMatchObject({ accepted: 1, completed: 1 });
  });

  it('finishes a batch that still collects when the application closes', async () => {
    const app = await start();
    await get(app, '/audit/last');
    await app.close();
    expect(app.log.batches).toEqual([['last']]);
  });
});
