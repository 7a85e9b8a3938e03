import {
  BadRequestException,
  Controller,
  Get,
  Inject,
  Injectable,
  Module,
  Param,
  Post,
  UseInterceptors,
  type ModuleMetadata,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { describe, expect, it, afterEach } from 'vitest';
import { defer, Deferrer, DeferWork, type DeferOptions, type DeferredWork, PerfModule } from '../../src/index.js';
import { settle } from '../../src/entries/testing.js';
import { MemoryPlace, MemoryStore } from '../contract/memory-store.js';
import { adapterOf, adapters, startApp, type TestApp } from '../fixtures/app.js';
import { until } from '../fixtures/until.js';

@Injectable()
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

describe.each(adapters)('boot errors of deferred work on %s', (adapter) => {
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
      'PERF_ERR_OPTION: `defer.maxPendign` is not an option. Did you mean `defer.maxPending`?\nTo switch the feature off, set `defer: false`.',
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
    expect(message).toMatch(/^PERF_ERR_DEFER_WORK: .* a class named SendReceipt, and so does other code/);
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
      '@DeferWork stands on "AuditInterceptor.intercept", which serves no HTTP route.',
    );
    @DeferWork(SendReceipt)
    @Injectable()
    class Nightly {
      run(): void {}
    }
    expect(await bootError({ providers: [Nightly, SendReceipt] })).toContain(
      '@DeferWork stands on "Nightly", which serves no HTTP route.',
    );
    @Injectable()
    class Cron {
      @DeferWork(SendReceipt)
      nightly(): void {}
    }
    expect(await bootError({ providers: [Cron, SendReceipt] })).toBe(
      'PERF_ERR_DECORATOR: @DeferWork stands on "Cron.nightly", which serves no HTTP route. Inject `Deferrer` and call `deferrer.defer()` there.',
    );
  });
});

describe('misuse of @DeferWork, told where it stands', () => {
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
      'an envelope that is not durable',
      () => controllerWith(DeferWork(SendReceipt, { envelope: true })),
      /`OrdersController.create @DeferWork.envelope` must go with `durable: true`/,
    ],
  ])('%s', (_, build, message) => {
    expect(build).toThrow(/^PERF_ERR_(DECORATOR|OPTION): /);
    expect(build).toThrow(message);
  });
});

@Controller('work')
class WorkController {
  @Get('defer')
  deferWithout() {
    defer(() => {});
    return 'ok';
  }
  @Get('decorated')
  @DeferWork(({ requestId }) => void ran.push(requestId))
  decorated() {
    return 'ok';
  }
}
const ran: string[] = [];

@Injectable()
class Asks {
  constructor(@Inject(Deferrer) readonly deferrer: Deferrer) {}
}

const codeOfDefer = (): unknown => {
  try {
    return defer(() => {});
  } catch (error) {
    return (error as { code: string }).code;
  }
};

@Controller('calls')
class CallsBack {
  @Get('at-once')
  atOnce() {
    return codeOfDefer();
  }
  @Get('later')
  later() {
    return new Promise((resolve) => setTimeout(() => resolve(codeOfDefer()), 1));
  }
}

@Controller('later')
class DefersLater {
  @Post(':status')
  async create(@Param('status') status: string) {
    await new Promise<void>((resolve) => {
      setTimeout(() => {
        defer(() => void ran.push('success'));
        defer(() => void ran.push('error'), { when: 'error' });
        defer(() => void ran.push('always'), { when: 'always' });
        resolve();
      }, 1);
    });
    if (status === '400') throw new BadRequestException('refused');
  }
}

let letGo: (() => void) | null = null;
@Controller('waits')
class Waits {
  @Get()
  get() {
    return new Promise<void>((resolve) => (letGo = resolve));
  }
}

describe.each(adapters)('switches of deferred work on %s', (adapter) => {
  let running: TestApp | null = null;
  afterEach(async () => {
    await running?.close();
    running = null;
    letGo = null;
    ran.length = 0;
  });
  const metadata = { controllers: [WorkController] };

  it('defer: false: Deferrer can be injected and every method throws PERF_ERR_OFF', async () => {
    running = await startApp(adapter, { perf: { defer: false }, metadata: { providers: [Asks] } });
    const { deferrer } = running.app.get(Asks);
    const queue = { name: 'q', addBulk: () => Promise.resolve() };
    expect(() => deferrer.defer(() => {})).toThrow('PERF_ERR_OFF: `deferrer.defer()`');
    expect(() => deferrer.addJob(queue, 'n', {})).toThrow('PERF_ERR_OFF: `deferrer.addJob()`');
    expect(() => deferrer.stats()).toThrow('PERF_ERR_OFF: `deferrer.stats()`');
    await expect(deferrer.idle()).rejects.toThrow('PERF_ERR_OFF: `deferrer.idle()`');
  });

  it.each([{}, { eventLoop: false }])(
    'defer: false: defer() throws PERF_ERR_OFF, whatever else runs in the process: %j',
    async (perf) => {
      running = await startApp(adapter, { perf: { ...perf, defer: false }, metadata: { controllers: [CallsBack] } });
      const codes = async (): Promise<unknown> =>
        Promise.all(['at-once', 'later'].map(async (path) => (await fetch(`${running!.url}/calls/${path}`)).text()));
      expect(await codes()).toEqual(['PERF_ERR_OFF', 'PERF_ERR_OFF']);
      const other = await startApp(adapter, { perf, metadata });
      for (let i = 0; i < 2; i++) expect(await codes()).toEqual(['PERF_ERR_OFF', 'PERF_ERR_OFF']);
      const { accepted } = other.app.get(Deferrer).stats();
      defer(() => {});
      expect([accepted, other.app.get(Deferrer).stats().accepted]).toEqual([0, 1]);
      await other.close();
    },
  );

  it.each([{ context: false }, { context: false, defer: false }])(
    'defer() of one application runs while another that can never be told is busy: %j',
    async (perf) => {
      const other = await startApp(adapter, { perf, metadata: { controllers: [Waits] } });
      running = await startApp(adapter, { metadata: { providers: [Asks] } });
      const answered = fetch(`${other.url}/waits`);
      await until('the request', () => letGo !== null);
      for (let i = 0; i < 2; i++) defer(() => void ran.push('outside'));
      await until('the work', () => ran.length === 2);
      letGo!();
      await answered;
      await other.close();
    },
  );

  it('outside a request, defer() does not go to an application whose boot has failed', async () => {
    @Injectable()
    class Unwell {
      onModuleInit(): void {
        throw new Error('boot fails');
      }
    }
    await expect(startApp(adapter, { metadata: { providers: [Unwell] } })).rejects.toThrow('boot fails');
    running = await startApp(adapter);
    const turns: string[] = [];
    defer(() => turns.push('task'));
    await running.app.get(Deferrer).idle();
    expect(turns).toEqual(['task']);
  });

  it('context off: defer() and deferrer.defer() throw PERF_ERR_CONTEXT_OFF and never run early', async () => {
    running = await startApp(adapter, { perf: { context: false }, metadata });
    let early = false;
    expect(() => running!.app.get(Deferrer).defer(() => (early = true))).toThrow(
      'PERF_ERR_CONTEXT_OFF: `deferrer.defer()` cannot tell which request it runs in, because the context store may not be used. Remove `context: false` from PerfModule.forRoot().',
    );
    expect((await fetch(`${running.url}/work/defer`)).status).toBe(500);
    await settle(running.app);
    expect(early).toBe(false);
  });

  it('the first defer() of all heeds `when`, also where it cannot be told which request calls', async () => {
    for (const status of [400, 201]) {
      running = await startApp(adapter, { metadata: { controllers: [DefersLater] } });
      expect((await fetch(`${running.url}/later/${status}`, { method: 'POST' })).status).toBe(status);
      await settle(running.app);
      expect(ran.splice(0)).toEqual(status === 400 ? ['error', 'always'] : ['success', 'always']);
      await running.close();
    }
  });

  it('an injected Deferrer waits for no request of another application', async () => {
    const other = await startApp(adapter, { metadata: { controllers: [Waits] } });
    running = await startApp(adapter, { metadata: { providers: [Asks] } });
    const answered = fetch(`${other.url}/waits`);
    await until('the request', () => letGo !== null);
    const { deferrer } = running.app.get(Asks);
    deferrer.defer(() => void ran.push('outside'));
    await until('the work', () => ran.includes('outside'));
    letGo!();
    await answered;
    await other.close();
  });

  it('@DeferWork needs no context store, nor latency', async () => {
    running = await startApp(adapter, { perf: { context: false, latency: false }, metadata });
    await fetch(`${running.url}/work/decorated`, { headers: { 'x-request-id': 'r-1' } });
    await settle(running.app);
    expect(ran).toEqual(['r-1']);
  });

  it('applications in one process do not see each other’s work', async () => {
    const other = await startApp(adapter, { metadata, perf: { context: true } });
    running = await startApp(adapter, { metadata, perf: { context: true } });
    await fetch(`${running.url}/work/decorated`);
    await fetch(`${running.url}/work/defer`);
    await settle(running.app);
    expect(running.app.get(Deferrer).stats()).toMatchObject({ accepted: 2, completed: 2 });
    expect(other.app.get(Deferrer).stats().accepted).toBe(0);
    await other.close();
  });
});

describe.each(adapters)('overflow `reject` on %s', (adapter) => {
  it('reserves room before the handler, answers 503 without running it, and takes requests again later', async () => {
    let handled = 0;
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    @Controller('jobs')
    class JobsController {
      @Post()
      @DeferWork(() => gate, { name: 'gated' })
      @DeferWork(() => gate, { name: 'gated' })
      create() {
        handled += 1;
        return {};
      }
    }
    const running = await startApp(adapter, {
      metadata: { controllers: [JobsController] },
      perf: { defer: { overflow: 'reject', maxPending: 3, concurrency: 1 } },
    });
    const deferrer = running.app.get(Deferrer);
    const post = async (): Promise<number> => (await fetch(`${running.url}/jobs`, { method: 'POST' })).status;
    expect(await post()).toBe(201);
    // One of its two runs, one waits; the next request takes the other two places.
    await until('the first to run', () => deferrer.stats().running === 1);
    expect(await post()).toBe(201);
    await until('three to wait', () => deferrer.stats().pending === 3);
    expect([await post(), await post()]).toEqual([503, 503]);
    expect(handled).toBe(2);
    release();
    await deferrer.idle();
    expect(await post()).toBe(201);
    await settle(running.app);
    expect(deferrer.stats()).toMatchObject({ accepted: 6, completed: 6, dropped: 0 });
    await running.close();
  });

  it('keeps nothing of a reservation that was half a success', async () => {
    @Controller('jobs')
    class JobsController {
      @Get('two')
      @DeferWork(() => {})
      @DeferWork(() => {})
      two() {
        return {};
      }
      @Get('one')
      @DeferWork(() => {})
      one() {
        return {};
      }
    }
    const running = await startApp(adapter, {
      metadata: { controllers: [JobsController] },
      perf: { defer: { overflow: 'reject', maxPending: 1 } },
    });
    expect((await fetch(`${running.url}/jobs/two`)).status).toBe(503);
    expect((await fetch(`${running.url}/jobs/one`)).status).toBe(200);
    await settle(running.app);
    expect(running.app.get(Deferrer).stats()).toMatchObject({ accepted: 1, completed: 1 });
    await running.close();
  });

  it('gives the reserved room back when the status forbids the work', async () => {
    @Controller('jobs')
    class JobsController {
      @Get()
      @DeferWork(() => {}, { when: 'error' })
      @DeferWork(() => {})
      fine() {
        return {};
      }
      @Get('bad')
      @DeferWork(() => {})
      @DeferWork(() => {}, { when: 'error' })
      bad(): never {
        throw new Error('bad');
      }
    }
    const running = await startApp(adapter, {
      metadata: { controllers: [JobsController] },
      perf: { defer: { overflow: 'reject', maxPending: 2 } },
    });
    for (let i = 0; i < 10; i++) {
      expect((await fetch(`${running.url}/jobs`)).status).toBe(200);
      expect((await fetch(`${running.url}/jobs/bad`)).status).toBe(500);
      await settle(running.app);
    }
    expect(running.app.get(Deferrer).stats()).toMatchObject({ accepted: 20, completed: 20 });
    await running.close();
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
