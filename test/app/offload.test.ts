import { Controller, Get, Inject, Injectable, Module, Scope, UseGuards, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterEach, describe, expect, it } from 'vitest';
import { cache, Cached, PerfCache } from '../../src/entries/cache.js';
import { Offload, offload, Offloader } from '../../src/entries/offload.js';
import { PerfModule, PerfService, type PerfModuleOptions } from '../../src/index.js';
import { type Adapter, adapterOf, either } from '../fixtures/app.js';
import { buildApp, closeApps } from '../fixtures/build-app.js';

afterEach(closeApps);

const module = new URL('./offload.module.js', import.meta.url);

@Injectable()
class Reports {
  @Offload({ timeoutMs: 1_000 })
  async render(month: string): Promise<string> {
    return `report of ${month}`;
  }

  renderTwice(): Promise<string[]> {
    return Promise.all([this.render('May'), this.render('June')]);
  }
}

@Controller()
class ReportsController {
  constructor(
    @Inject(Reports) private readonly reports: Reports,
    @Inject(Offloader) private readonly offloader: Offloader,
  ) {}

  @Get()
  async render() {
    return { reports: await this.reports.renderTwice(), done: this.offloader.stats().done };
  }
}

async function boot(adapter: Adapter, perf: PerfModuleOptions, metadata: ModuleMetadata) {
  const lines: string[] = [];
  const keep = (line: unknown): void => void lines.push(String(line));
  const built = await buildApp(adapterOf(adapter), {
    perf,
    metadata,
    nest: { logger: { log: keep, warn: keep, error: keep } },
  });
  return { ...built, lines };
}
const refused = (metadata: ModuleMetadata, extensions = [offload({ module, inline: true })]) =>
  expect(boot('fastify', { extensions }, metadata)).rejects;

describe.each(either('fastify'))('offload() with `inline`, on %s', (adapter) => {
  it.each<[string, PerfModuleOptions]>([
    ['', {}],
    [', with the kill switch', { enabled: false }],
  ])('runs the methods here, counts them, and says so once%s', async (_how, perf) => {
    const { app, lines } = await boot(
      adapter,
      { ...perf, extensions: [offload({ module, inline: true, warm: 2 })] },
      { providers: [Reports], controllers: [ReportsController] },
    );
    await app.listen(0, '127.0.0.1');
    const { port } = app.getHttpServer().address() as { port: number };
    const answer = await (await fetch(`http://127.0.0.1:${port}`)).json();
    expect(answer).toEqual({ reports: ['report of May', 'report of June'], done: 2 });
    const said = lines.filter((line) => line.includes('offload()'));
    expect(said).toEqual(['offload() runs everything on the main thread: `inline: true`.']);
    expect(app.get(PerfService).snapshot().offload).toMatchObject({
      threads: 0,
      done: 2,
      failed: 0,
      throttledMs: 0,
    });
    const reports = app.get(Reports);
    await app.close();
    expect(Object.getOwnPropertyNames(reports)).toEqual([]);
    expect(await reports.render('July')).toBe('report of July');
  });
});

describe('offload()', () => {
  it('stops the boot where its program is in a bundle, or the module is TypeScript', async () => {
    await refused({ providers: [Reports] }, [offload({ module })]).toThrow(
      'PERF_ERR_OFFLOAD: Workers have no program: leave nestjs-perf and piscina out of the bundle (`external`). For tests: `inline: true` runs everything on the main thread.',
    );
  });

  it.each([
    ['cache(), offload()', [cache(), offload({ module, inline: true })]],
    ['offload(), cache()', [offload({ module, inline: true }), cache()]],
  ])('is not asked for what is cached, with %s', async (_order, extensions) => {
    class Totals {
      @Cached({ ttlMs: 60_000 })
      @Offload()
      async total(month: string): Promise<string> {
        return `total of ${month}`;
      }
    }
    const { app } = await boot('fastify', { extensions }, { providers: [Totals] });
    const totals = app.get(Totals);
    expect([await totals.total('May'), await totals.total('May')]).toEqual(['total of May', 'total of May']);
    expect(app.get(PerfCache).stats()).toMatchObject([{ hits: 1, misses: 1 }]);
    expect(app.get(Offloader).stats().done).toBe(1);
    await app.close();
    expect(Object.getOwnPropertyNames(totals)).toEqual([]);
  });

  it('is nothing that an application without it has to know of', async () => {
    const { app } = await boot('fastify', {}, {});
    expect(app.get(PerfService).snapshot().offload).toBeNull();
    expect(() => app.get(Offloader)).toThrow();
  });

  it('serves applications without HTTP, with options that a factory makes', async () => {
    @Module({
      imports: [
        PerfModule.forRootAsync({ extensions: [offload({ module, inline: true })], useFactory: () => ({ sinks: [] }) }),
      ],
      providers: [Reports],
    })
    class WorkModule {}
    const app = await NestFactory.createApplicationContext(WorkModule, { logger: false });
    expect(await app.get(Reports).renderTwice()).toHaveLength(2);
    expect(app.get(Offloader).stats()).toMatchObject({ done: 2 });
    await app.close();
  });
});

describe('@Offload() stops the boot', () => {
  it('without the extension', async () => {
    await refused({ providers: [Reports] }, []).toThrow(
      'PERF_ERR_EXTENSION: `@Offload()` on "Reports.render" does nothing without its extension. ' +
        "Add it: PerfModule.forRoot({ extensions: [offload({ module: new URL('./offload.module.js', import.meta.url) })] }).",
    );
  });

  it('on a controller', async () => {
    @Controller()
    class RenderController {
      @Get()
      @Offload()
      async render(): Promise<void> {}
    }
    await refused({ controllers: [RenderController] }).toThrow(
      'PERF_ERR_DECORATOR: `@Offload()` on "RenderController.render": controllers, guards, pipes, interceptors and filters serve a request, which cannot travel. Put it on a method of a provider that it injects.',
    );
  });

  it('on what Nest makes for one handler, as a guard', async () => {
    @Injectable()
    class TokenGuard {
      canActivate(): Promise<boolean> {
        return this.verify();
      }

      @Offload()
      async verify(): Promise<boolean> {
        return true;
      }
    }
    @Controller()
    @UseGuards(TokenGuard)
    class GuardedController {}
    await refused({ controllers: [GuardedController] }).toThrow(
      'PERF_ERR_DECORATOR: `@Offload()` on "TokenGuard.verify": controllers, guards, pipes, interceptors and filters serve a request, which cannot travel. Put it on a method of a provider that it injects.',
    );
  });

  it.each([Scope.REQUEST, Scope.TRANSIENT])('on a provider that is built anew (%#)', async (scope) => {
    @Injectable({ scope })
    class Scoped {
      @Offload()
      async render(): Promise<void> {}
    }
    await refused({ providers: [Scoped] }).toThrow(
      '"Scoped.render": the provider is request-scoped or transient, and no worker has that instance.',
    );
  });

  it('on two providers of one name', async () => {
    const twice = [new Reports(), new Reports()].map((useValue, i) => ({ provide: `reports ${i}`, useValue }));
    await refused({ providers: twice }).toThrow(
      '"Reports.render": two providers have this name, and a worker could not tell them apart. Rename a class.',
    );
  });

  it('not where one instance has two tokens', async () => {
    const { app } = await boot(
      'fastify',
      { extensions: [offload({ module, inline: true })] },
      { providers: [Reports, { provide: 'alias', useExisting: Reports }] },
    );
    expect(await app.get<Reports>('alias').render('May')).toBe('report of May');
    expect(app.get(Offloader).stats().done).toBe(1);
  });
});
