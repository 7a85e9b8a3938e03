import { Controller, Injectable, Module, Post, UseInterceptors, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import { DeferWork, DurableWork, type DeferOptions, type DeferredWork, PerfModule } from '../../src/index.js';
import { MemoryPlace, MemoryStore } from '../unit/contract/memory-store.js';
import { adapterOf, either, startApp, type TestApp } from '../fixtures/app.js';
import { until } from '../fixtures/until.js';

@Injectable()
@DurableWork()
class SendReceipt implements DeferredWork {
  run(): void {}
}
@Injectable()
class NoRun {
  go(): void {}
}

function controllerWith(work: MethodDecorator & ClassDecorator): new () => object {
  @Controller('orders')
  class OrdersController {
    @Post()
    @work
    create() {
      return {};
    }
  }
  return OrdersController;
}

describe.each(either('fastify'))('boot errors of deferred work on %s', (adapter) => {
  async function bootError(metadata: ModuleMetadata, deferOption: false | DeferOptions = {}): Promise<string> {
    let app: TestApp;
    try {
      app = await startApp(adapter, { metadata, perf: { defer: deferOption } });
    } catch (error) {
      return (error as Error).message;
    }
    await app.close();
    return 'booted';
  }

  it.each([
    [
      'a class that no module provides',
      { controllers: [controllerWith(DeferWork(SendReceipt))] },
      undefined,
      'PERF_ERR_DEFER_WORK: "OrdersController.create" defers to SendReceipt, but no module provides SendReceipt. Add it to the `providers` of the module that holds OrdersController.',
    ],
    [
      'a class without run()',
      { controllers: [controllerWith(DeferWork(NoRun as never))], providers: [NoRun] },
      undefined,
      'PERF_ERR_DEFER_WORK: "OrdersController.create" defers to NoRun, which has no method `run`. Implement `DeferredWork`.',
    ],
    [
      'durable work without a store',
      { controllers: [controllerWith(DeferWork(SendReceipt, { durable: true }))], providers: [SendReceipt] },
      undefined,
      'PERF_ERR_STORE: "OrdersController.create" defers to SendReceipt with `durable: true`, but `defer.store` is not set. Pass `defer: { store: bullmqStore({ connection }) }` from \'nestjs-perf/bullmq\'.',
    ],
    [
      'deferred work that is switched off',
      { controllers: [controllerWith(DeferWork(SendReceipt))], providers: [SendReceipt] },
      false as const,
      'PERF_ERR_OFF: `@DeferWork on OrdersController.create` needs deferred work, which is switched off. Remove `defer: false` from PerfModule.forRoot().',
    ],
    [
      'an unknown option',
      {},
      { maxPendign: 5 } as never,
      'PERF_ERR_OPTION: `defer.maxPendign` is not an option. Known options: concurrency, maxPending, maxPendingBytes, overflow, drainTimeoutMs, batch, store.\nTo switch the feature off, set `defer: false`.',
    ],
    [
      'a store that is none',
      {},
      { store: {} } as never,
      'PERF_ERR_OPTION: `defer.store` must be a store, for example `bullmqStore({ connection })`, got an object.\nTo switch the feature off, set `defer: false`.',
    ],
  ])('%s', async (_, metadata, option, message) => {
    expect(await bootError(metadata, option)).toBe(message);
  });

  it('two durable classes of one name, which a job could not tell apart', async () => {
    const other = (() => {
      @Injectable()
      @DurableWork()
      class SendReceipt implements DeferredWork {
        run(): void {}
      }
      return SendReceipt;
    })();
    const message = await bootError(
      {
        controllers: [
          controllerWith(DeferWork(SendReceipt, { durable: true })),
          controllerWith(DeferWork(other, { durable: true })),
        ],
        providers: [SendReceipt, other],
      },
      { store: new MemoryStore(new MemoryPlace(), false) },
    );
    expect(message).toContain(
      'PERF_ERR_DEFER_WORK: two classes of durable work have the name `"SendReceipt"` (string)',
    );
  });

  it('@DeferWork where there is no response to run after', async () => {
    @Injectable()
    class AuditInterceptor {
      @DeferWork(SendReceipt)
      intercept(): void {}
    }
    @UseInterceptors(AuditInterceptor)
    @Controller()
    class AuditedController {}
    expect(await bootError({ controllers: [AuditedController], providers: [SendReceipt] })).toContain(
      '@DeferWork decorates "AuditInterceptor.intercept", which serves no HTTP route.',
    );
    class Nightly {
      run(): void {}
    }
    expect(() => DeferWork(SendReceipt)(Nightly)).toThrow(
      'PERF_ERR_DECORATOR: @DeferWork on "Nightly" finds no route methods. Put it on a controller with routes, or on a handler.',
    );
    @Injectable()
    class Cron {
      @DeferWork(SendReceipt)
      nightly(): void {}
    }
    expect(await bootError({ providers: [Cron, SendReceipt] })).toBe(
      'PERF_ERR_DECORATOR: @DeferWork decorates "Cron.nightly", which serves no HTTP route. Inject `Deferrer` and call `deferrer.defer()` there.',
    );
  });
});

describe('misuse of @DeferWork, named where it is applied', () => {
  it.each([
    [
      'nothing, as circular imports leave it',
      () => controllerWith(DeferWork(undefined as never)),
      /got `undefined`.*import each other/,
    ],
    ['an object', () => controllerWith(DeferWork({} as never)), /takes a class or a function, got an object/],
    [
      'a durable function',
      () => controllerWith(DeferWork(() => {}, { durable: true })),
      /cannot make a function durable/,
    ],
    [
      'a wrong `when`',
      () => controllerWith(DeferWork(SendReceipt, { when: 'sometimes' as never })),
      /`OrdersController.create @DeferWork.when` must be one of `"success"`/,
    ],
    [
      'attempts of 0',
      () => controllerWith(DeferWork(SendReceipt, { attempts: 0 })),
      /a whole number of attempts of 1 or more, got `0`/,
    ],
    [
      'a queue that is not durable',
      () => controllerWith(DeferWork(SendReceipt, { queue: 'mail' })),
      /`OrdersController.create @DeferWork.queue` must go with `durable: true`/,
    ],
    [
      'options of @DurableWork that are none',
      () => DurableWork('mail', 3 as never)(SendReceipt),
      /`SendReceipt @DurableWork` must be an object, got `3` \(number\)/,
    ],
  ])('%s', (_, build, message) => {
    expect(build).toThrow(/^PERF_ERR_(DECORATOR|OPTION): /);
    expect(build).toThrow(message);
  });
});

describe('the warning about shutdown hooks', () => {
  const about = (message: string): boolean => message.includes('SIGTERM');
  async function warningsWith(hooks: boolean): Promise<string[]> {
    const listeners = process.listeners('SIGTERM');
    process.removeAllListeners('SIGTERM');
    const warnings: string[] = [];
    const logger = { log: () => {}, error: () => {}, warn: (message: string) => warnings.push(message) };
    try {
      @Module({ imports: [PerfModule.forRoot()] })
      class AppModule {}
      const app = await NestFactory.create(AppModule, adapterOf('fastify'), { logger, abortOnError: false });
      if (hooks) app.enableShutdownHooks();
      await app.listen(0, '127.0.0.1');
      if (!hooks) await until('the warning', () => warnings.some(about));
      await new Promise((resolve) => setTimeout(resolve, 20));
      await app.close();
    } finally {
      process.removeAllListeners('SIGTERM');
      for (const listener of listeners) process.on('SIGTERM', listener);
    }
    return warnings.filter(about);
  }

  it('comes once when the server listens without them', async () => {
    expect(await warningsWith(false)).toEqual([
      'SIGTERM would end this process without draining deferred work or flushing records. Call `app.enableShutdownHooks()` in main.ts.',
    ]);
  });

  it('does not come with them', async () => {
    expect(await warningsWith(true)).toEqual([]);
  });
});
