import { createHook } from 'node:async_hooks';
import type { Server } from 'node:http';
import { type CanActivate, Controller, type ExecutionContext, Get, Inject, Injectable } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import {
  Deferrer,
  DeferWork,
  Experiments,
  PerfInterceptor,
  PerfModule,
  type PerfModuleOptions,
  PerfService,
  type PerfSink,
  ResourceSampler,
  SharedResponse,
} from '../../src/index.js';
import { memorySink } from '../../src/entries/testing.js';
import { adapterOf, adapters } from '../fixtures/app.js';
import { closeApps, listeningApp } from '../fixtures/build-app.js';
import { callAccepting } from '../fixtures/http-client.js';
import { Lines } from '../fixtures/lines.js';
import { until } from '../fixtures/until.js';

const VARIABLE = 'NESTJS_PERF';
const withEnabled = (enabled: unknown, more: PerfModuleOptions = {}): PerfModuleOptions =>
  ({ ...more, enabled }) as PerfModuleOptions;

const TEXT = 'compressible '.repeat(2_000);
let made = 0;
let steps: string[] = [];

@Injectable()
class Everything {
  constructor(
    @Inject(PerfService) readonly perf: PerfService,
    @Inject(Deferrer) readonly deferrer: Deferrer,
    @Inject(ResourceSampler) readonly sampler: ResourceSampler,
    @Inject(Experiments) readonly experiments: Experiments,
    @Inject(PerfInterceptor) readonly interceptor: PerfInterceptor,
  ) {}
}

@Controller()
class SwitchedController {
  constructor(@Inject(Everything) private readonly all: Everything) {}
  @Get('text')
  text() {
    return { text: TEXT };
  }
  @Get('shared')
  @SharedResponse({ ttlMs: 60_000 })
  shared() {
    made += 1;
    return { made };
  }
  @Get('works')
  @DeferWork(() => void steps.push('work'))
  async works() {
    steps.push('handler');
    return 'done';
  }
  @Get('defers')
  async defers() {
    this.all.deferrer.defer(() => void steps.push('work'));
    this.all.perf.note({ rows: 1 });
    steps.push('handler');
    return 'done';
  }
}
const metadata = { controllers: [SwitchedController], providers: [Everything] };

@Controller()
class SimpleController {
  @Get('text')
  text() {
    return { text: TEXT };
  }
  @Get('blocks')
  blocks() {
    const end = performance.now() + 120;
    while (performance.now() < end);
    return 'done';
  }
}
const simple = { controllers: [SimpleController] };

const before = process.env[VARIABLE];
afterEach(async () => {
  if (before === undefined) delete process.env[VARIABLE];
  else process.env[VARIABLE] = before;
  await closeApps();
});

/** Keeps what a sink is asked for. */
function toldSink(): PerfSink & { told: string[] } {
  const told: string[] = [];
  return {
    ...memorySink(),
    name: 'told',
    told,
    start: () => void told.push('start'),
    publish: () => void told.push('publish'),
  };
}

const ways: [name: string, options: () => PerfModuleOptions][] = [
  ['`enabled: false`', () => withEnabled(false)],
  [
    '`NESTJS_PERF=off`',
    () => {
      process.env[VARIABLE] = 'off';
      return {};
    },
  ],
  [
    '`NESTJS_PERF=off` against `enabled: true`',
    () => {
      process.env[VARIABLE] = 'off';
      return withEnabled(true);
    },
  ],
];

describe.each(adapters)('the kill switch on %s', (adapter) => {
  describe.each(ways)('%s', (_name, options) => {
    const start = (of: object = metadata, more: PerfModuleOptions = {}) =>
      listeningApp(adapterOf(adapter), { metadata: of, perf: { ...options(), ...more } });

    it('measures and publishes nothing, and starts no sink', async () => {
      const sink = toldSink();
      const { app, url } = await start(simple, { sinks: [sink], resources: { intervalMs: 10 } as never });
      for (const path of ['/text', '/blocks', '/nowhere']) await (await fetch(url + path)).text();
      const snapshot = app.get(PerfService).snapshot();
      await app.close();
      expect(sink.told).toEqual([]);
      expect(snapshot).toMatchObject({ routes: [], eventLoop: null, resources: null, compression: null });
      expect(snapshot.at).toBeGreaterThan(1_700_000_000_000);
    });

    it('says so in one line, and nothing of options that nobody has set', async () => {
      const lines = new Lines();
      await listeningApp(adapterOf(adapter), { perf: options(), metadata, nest: { logger: lines } });
      expect(lines.all).toContain('Switched off: nothing is measured, compressed or shared. Deferred work still runs.');
      expect(lines.all.filter((line) => line.includes('compression: false'))).toEqual([]);
    });

    it('answers liveness probes at `eventLoop.port`: the switch must not restart the pods', async () => {
      const lines = new Lines();
      const perf = { ...options(), eventLoop: { port: 0 } };
      const { app } = await listeningApp(adapterOf(adapter), { perf, metadata: simple, nest: { logger: lines } });
      const [live] = lines.all.flatMap((line) => /GET (http:\S+\/live) /.exec(line)?.[1] ?? []);
      const answer = await fetch(live!);
      expect([answer.status, await answer.json()]).toEqual([200, { beatAgeMs: 0, blocked: null }]);
      const metrics = await (await fetch(live!.replace('live', 'metrics'))).text();
      expect(metrics).toContain('perf_eventloop_beat_age_seconds 0\n');
      await app.close();
      await expect(fetch(live!)).rejects.toThrow('fetch failed');
    });
  });

  describe('whoever has thrown it', () => {
    const off = withEnabled(false);
    const start = (of: object = metadata) => listeningApp(adapterOf(adapter), { metadata: of, perf: off });

    it('leaves the server, its answers and the process as they are without the module', async () => {
      const counts = async (perf: PerfModuleOptions | null): Promise<unknown> => {
        const built = await listeningApp(adapterOf(adapter), { metadata: simple, perf });
        const server = built.app.getHttpServer() as Server;
        const { headers } = await callAccepting(`${built.url}/text`, 'gzip, br');
        const listeners = server.eventNames().map((name) => [String(name), server.listenerCount(name)]);
        await built.app.close();
        return { listeners, headers: Object.keys(headers).sort(), coding: headers['content-encoding'] };
      };
      const bare = await counts(null);
      // Deferred work must know when a response has ended.
      expect(await counts({ ...off, sinks: [], defer: false })).toEqual(bare);
    });

    it('leaves the adapter as it is, and gives guards the handlers themselves', async () => {
      const seen: unknown[] = [];
      class LookingGuard implements CanActivate {
        canActivate(context: ExecutionContext): boolean {
          return seen.push(context.getHandler()) > 0;
        }
      }
      const keysOf = async (perf: PerfModuleOptions | null): Promise<string[]> => {
        const built = await listeningApp(adapterOf(adapter), {
          metadata: simple,
          perf,
          beforeInit: (app) => void app.useGlobalGuards(new LookingGuard()),
        });
        await (await fetch(`${built.url}/text`)).text();
        // What Nest's own `setOnRouteTriggered()` keeps: deferred work has the name of its route.
        return Object.keys(built.app.getHttpAdapter()).filter((key) => key !== 'onRouteTriggered');
      };
      expect(await keysOf({ ...off, sinks: [] })).toEqual(await keysOf(null));
      const { text } = SimpleController.prototype;
      expect(seen).toEqual([text, text]);
      expect(seen.every((handler) => handler === text)).toBe(true);
    });

    it('has no thread and no timer', async () => {
      const own: string[] = [];
      const hook = createHook({
        init(_id, type) {
          if (type !== 'WORKER' && type !== 'Timeout') return;
          const { stack = '' } = new Error('made here');
          if (type === 'WORKER' || /[/\\]src[/\\](?!.*node_modules)/.test(stack)) own.push(type);
        },
      }).enable();
      const built = await start(simple);
      await (await fetch(`${built.url}/text`)).text();
      hook.disable();
      expect(own).toEqual([]);
    });

    it('compresses and shares nothing', async () => {
      const { url } = await start();
      made = 0;
      expect((await callAccepting(`${url}/text`, 'gzip, br')).headers['content-encoding']).toBeUndefined();
      expect(await Promise.all([1, 2].map(async () => (await fetch(`${url}/shared`)).status))).toEqual([200, 200]);
      expect(made).toBe(2);
    });

    it.each(['/works', '/defers'])('runs deferred work after the response all the same: %s', async (path) => {
      steps = [];
      const built = await start();
      const server = built.app.getHttpServer() as Server;
      server.prependListener('request', (_request, response) => {
        response.once('finish', () => steps.push('response'));
      });
      expect((await fetch(built.url + path)).status).toBe(200);
      await until('the work', () => steps.includes('work'), 3_000);
      expect(steps).toEqual(['handler', 'response', 'work']);
    });

    it('lets everything be injected', async () => {
      const { app } = await start();
      const all = app.get(Everything);
      expect(all.perf.snapshot().routes).toEqual([]);
      expect(all.sampler.sample().process.rssBytes).toBeGreaterThan(0);
      expect(all.experiments.check('any')).toBe(false);
      expect(all.deferrer.stats()).toMatchObject({ pending: 0 });
      expect(all.interceptor).toBeInstanceOf(PerfInterceptor);
    });
  });

  it('is not thrown by another value of the variable', async () => {
    process.env[VARIABLE] = 'on';
    const { app, url } = await listeningApp(adapterOf(adapter), { metadata: simple });
    await (await fetch(`${url}/text`)).text();
    await until('the route', () => app.get(PerfService).snapshot().routes.length === 1, 3_000);
  });
});

it.each(['no', 0, null])('a wrong `enabled` stops the boot: %j', async (enabled) => {
  const boot = async (): Promise<unknown> => listeningApp(adapterOf('fastify'), { perf: withEnabled(enabled) });
  await expect(boot()).rejects.toMatchObject({
    code: 'PERF_ERR_OPTION',
    message: expect.stringMatching(/`enabled` must be `true` or `false`, got/) as unknown,
  });
  expect(() => PerfModule.forRoot(withEnabled(true))).not.toThrow();
});
