import { Controller, Get, Logger, Module, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { Deferrer, loggerSink, PerfModule, PerfService, SlowMs, type PerfModuleOptions } from '../../src/index.js';
import { cache } from '../../src/entries/cache.js';
import { prometheusSink } from '../../src/entries/prometheus.js';
import { record } from '../../src/entries/record.js';
import { adapterOf, either } from '../fixtures/app.js';
import { closeApps, listeningApp, recordsOf } from '../fixtures/build-app.js';
import { Lines } from '../fixtures/lines.js';
import { uncaughtDuring } from '../fixtures/uncaught.js';
import { until } from '../fixtures/until.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

@SlowMs(5)
@Controller('reports')
class ReportsController {
  @Get('own')
  @SlowMs(60_000)
  async own() {
    await delay(20);
  }
  @Get('of/:id')
  async of(@Param('id') id: string) {
    await delay(20);
    return id;
  }
}
@Controller()
class PlainController {
  @Get('quick')
  async quick() {
    await delay(20);
  }
}
const NO_FEATURE = Object.fromEntries(
  ['resources', 'eventLoop', 'upstream', 'latency', 'users', 'history', 'compression', 'defer'].map((name) => [
    name,
    false,
  ]),
);
const metadata = { controllers: [ReportsController, PlainController] };

afterEach(async () => {
  await closeApps();
  Logger.overrideLogger(false);
});

it('says of an application without HTTP what works there, and no path that nothing serves', async () => {
  const logger = new Lines();
  @Module({
    imports: [
      PerfModule.forRoot({ dashboard: { authorize: () => true }, release: '1.4.2', sinks: [prometheusSink()] }),
    ],
  })
  class WorkerModule {}
  const app = await NestFactory.createApplicationContext(WorkerModule, { logger });
  await app.close();
  expect(logger.all.filter((line) => line.startsWith('On: '))).toEqual([
    'On: resources, event loop, upstream calls, latency, users, history, deferred work. Records go to: prometheus. ' +
      'Look at `PerfService.snapshot()`. Release 1.4.2',
  ]);
});

describe.each(either('fastify'))('on %s', (adapter) => {
  async function start(perf: PerfModuleOptions) {
    const lines = new Lines();
    const built = await listeningApp(adapterOf(adapter), { metadata, perf, nest: { logger: lines } });
    const own = () => lines.all.filter((line) => /^(On:|GET|\d|Last)/.test(line));
    return { ...built, lines, own };
  }

  it('the first line says what is on and where to look', async () => {
    const { own } = await start({
      compression: false,
      release: '1.4.2',
      sinks: [loggerSink(), prometheusSink()],
      snapshotEndpoint: { authorize: () => true },
    });
    expect(own()).toEqual([
      'On: resources, event loop, upstream calls, latency, users, history, deferred work. Records go to: logger, prometheus, memory. ' +
        'Look at GET /perf/snapshot, GET /metrics, `PerfService.snapshot()`. Release 1.4.2',
    ]);
  });

  it('the first line has the page among the features, and not among the sinks', async () => {
    const { own } = await start({ dashboard: { authorize: () => true }, sinks: [] });
    expect(own()[0]).toMatch(/, dashboard\. Records go to: memory\. /);
  });

  it.each([
    [{}, /^On: resources, .*, deferred work, cache, record\. Records go to: /],
    [{ ...NO_FEATURE, sinks: [] }, /^On: cache, record\. /],
  ])('the first line names extensions: %j', async (perf, said) => {
    const recorded = record({ directory: join(tmpdir(), 'never-recorded') });
    const { own } = await start({ ...perf, extensions: [cache(), recorded] });
    expect(own()[0]).toMatch(said);
  });

  it('a route has its own idea of slow, and a slow one is told once', async () => {
    const built = await start({ sinks: [loggerSink()] });
    for (const path of ['of/1', 'own', 'of/2', 'of/3']) await fetch(`${built.url}/reports/${path}`);
    await fetch(`${built.url}/quick`);
    const records = await recordsOf(built, 5);
    expect(records.map(({ slow }) => slow)).toEqual([true, undefined, true, true, undefined]);
    await built.app.close();
    const [, first, again, ...more] = built.own();
    expect(first).toMatch(/^GET \/reports\/of\/:id \(ReportsController\.of\) took \d+ ms: status 200, .*id \S+$/);
    expect(again).toMatch(/^2 more slow requests: 2 × GET \/reports\/of\/:id \(ReportsController\.of\), up to \d+ ms$/);
    expect(more).toEqual([]);
  });

  it('a window’s requests are summed up in one line', async () => {
    const { url, own } = await start({ latency: { slowMs: 10_000 }, sinks: [loggerSink({ summaryMs: 300 })] });
    await until(
      'a window of ten requests',
      async () => {
        await Promise.all(Array.from({ length: 12 }, () => fetch(`${url}/quick`)));
        return own().some((line) => /^Last 0\.3 s: .*\. Top routes by total time: \d+ × GET \/quick p50 /.test(line));
      },
      10_000,
    );
  });

  it('a logger that fails ends nothing', async () => {
    const said = { all: 0, summaries: 0 };
    let broken = false;
    const say = (text: unknown): void => {
      if (!broken) return;
      said.all += 1;
      if (String(text).startsWith('Last ')) said.summaries += 1;
      throw new Error('the log has closed');
    };
    const logger = { log: say, warn: say, error: say };
    const bad = { name: 'bad', publish: () => Promise.reject(new Error('no disk')) };
    const built = await listeningApp(adapterOf(adapter), {
      metadata: { controllers: [PlainController] },
      perf: { sinks: [bad, loggerSink({ summaryMs: 20 })] },
      nest: { logger },
    });
    broken = true;
    const caught = await uncaughtDuring(async () => {
      expect((await fetch(`${built.url}/quick`)).status).toBe(200);
      await recordsOf(built, 1);
      await until('a summary', () => said.summaries > 0);
    });
    broken = false;
    expect(caught).toEqual([]);
    expect(said.all).toBeGreaterThan(said.summaries);
  });
});

it.each(either('fastify'))('health() on %s tells of deferred work that fills up', async (adapter) => {
  const defer = { concurrency: 1, maxPending: 10 };
  const { app } = await listeningApp(adapterOf(adapter), {
    metadata,
    perf: { defer, eventLoop: false, resources: false },
  });
  const perf = app.get(PerfService);
  expect(perf.health()).toEqual({ status: 'ok', reasons: [] });
  let finish = (): void => {};
  const held = new Promise<void>((resolve) => (finish = resolve));
  for (let i = 0; i < 10; i++) app.get(Deferrer).defer(() => held);
  await until('the first to run', () => perf.snapshot().defer!.running === 1);
  expect(perf.health()).toEqual({ status: 'degraded', reasons: ['deferred work: 9 of 10 pending'] });
  finish();
  await until('none to be left', () => perf.health().status === 'ok');
});
