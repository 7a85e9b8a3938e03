import { Controller, Get } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { afterEach, expect, it } from 'vitest';
import { displayJson } from '../../src/core/printable.js';
import { HistoryReader } from '../../src/ports/history.js';
import { LatencyFigures } from '../../src/ports/latency-figures.js';
import { RouteTimeFigures } from '../../src/ports/route-time.js';
import { Overview } from '../../src/ports/overview.js';
import { UserList } from '../../src/ports/users.js';
import { DashboardView } from '../../src/dashboard/dashboard-view.js';
import { RecentRecords } from '../../src/dashboard/recent-records.js';
import type { DashboardData } from '../../src/dashboard/view.js';
import { PerfApplication } from '../../src/request/application.js';
import { adapterOf } from '../fixtures/app.js';
import { buildApp, closeApps } from '../fixtures/build-app.js';
import { withEventLoop } from '../fixtures/usual.js';

const LONG = process.env['PERF_LONG'] !== undefined;
const [FEW, MANY] = LONG ? [500, 10_000] : [200, 800];
const SAMPLES = LONG ? 100 : 9;

withEventLoop();
afterEach(closeApps);

/** What a page of an application with so many routes asks, each of which was asked for once. Each look is a new sample. */
async function pageOf(
  routes: number,
): Promise<{ ask: (i: number) => Promise<unknown>; look: () => Promise<DashboardData> }> {
  class ManyController {}
  const prototype = ManyController.prototype as Record<string, () => object>;
  for (let i = 0; i < routes; i++) {
    prototype[`one${i}`] = () => ({});
    const descriptor = Object.getOwnPropertyDescriptor(prototype, `one${i}`)!;
    Get(`items/of-a-resource-with-a-name/${i}`)(prototype, `one${i}`, descriptor);
  }
  Controller()(ManyController);
  const { app } = await buildApp(adapterOf('fastify'), { metadata: { controllers: [ManyController] } });
  const ask = (i: number) => (app as NestFastifyApplication).inject(`/items/of-a-resource-with-a-name/${i}`);
  for (let i = 0; i < routes; i++) await ask(i);
  let skippedMs = 0;
  const nowMs = (): number => performance.now() + skippedMs;
  const host: PerfApplication = Object.assign(Object.create(app.get<PerfApplication>(PerfApplication)), { nowMs });
  const sources = {
    overview: app.get<Overview>(Overview),
    latency: app.get<LatencyFigures>(LatencyFigures),
    times: app.get<RouteTimeFigures>(RouteTimeFigures),
    users: app.get<UserList>(UserList),
    history: app.get<HistoryReader>(HistoryReader),
    experiments: null,
    rejected: null,
  };
  const view = new DashboardView(host, sources, new RecentRecords(), 'app.js', false);
  const look = (): Promise<DashboardData> => {
    skippedMs += 20_000;
    return view.read({ scope: null, route: null });
  };
  return { ask, look };
}

async function measured(routes: number): Promise<{ whole: DashboardData; bytes: number; cpuMs: number[] }> {
  const { ask, look } = await pageOf(routes);
  const whole = await look();
  const cpuMs: number[] = [];
  for (let n = 0; n < SAMPLES; n++) {
    for (let i = 0; i < 20; i++) await ask(i);
    const before = process.cpuUsage();
    await look();
    const { user, system } = process.cpuUsage(before);
    cpuMs.push((user + system) / 1_000);
  }
  return { whole, bytes: Buffer.byteLength(displayJson(whole)), cpuMs: cpuMs.toSorted((a, b) => a - b) };
}

it('is made between the turns of other work', { timeout: 60_000 }, async () => {
  const { look } = await pageOf(500);
  const turnMs = 10;
  let turns = 0;
  let looking = true;
  const work = (): void => {
    const endMs = performance.now() + turnMs;
    while (performance.now() < endMs);
    turns += 1;
    if (looking) setImmediate(work);
  };
  setImmediate(work);
  await look();
  looking = false;
  expect(turns).toBeGreaterThanOrEqual(2);
});

it(
  'an answer is bounded, and what it costs grows no faster than the number of routes',
  { timeout: 300_000 },
  async () => {
    const few = await measured(FEW);
    const many = await measured(MANY);
    for (const { whole, bytes } of [few, many]) {
      expect(bytes).toBeLessThanOrEqual(256 * 1_024);
      expect(whole.routes.length).toBeLessThanOrEqual(500);
    }
    expect([few.whole.totals!.routes, many.whole.totals!.routes]).toEqual([FEW, MANY]);
    // Four times of what is proportional, a quarter of what is not.
    expect(many.cpuMs[0]! / few.cpuMs[0]!).toBeLessThan((4 * MANY) / FEW);
  },
);
