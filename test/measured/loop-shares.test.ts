import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { Controller, Get } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { PerfService } from '../../src/index.js';
import { either, startApp } from '../fixtures/app.js';
import { Load } from '../fixtures/load.js';

/** 100 samples a second; fewer on a busy machine, where one represents several. */
const SECONDS = process.env['PERF_LONG'] === undefined ? 12 : 20;
/** Of a share: what chance leaves of so many samples. */
const NEAR = 0.02 * Math.sqrt(20 / SECONDS);
const MIN_SAMPLES = 0.7 * 100 * SECONDS;
/** A thread that spins was not on a core when its clock has jumped so far. */
const OFF_CPU_MS = 2;
const MAX_OFF_CPU = 0.1;
const PIECES = 5;

const worked = new Map<string, { count: number; ms: number }>();
let offCpuMs = 0;

/** `requests`: it is so much of one. */
function work(route: string, ms: number, requests = 1): object {
  const startedMs = performance.now();
  let lastMs = startedMs;
  while (lastMs - startedMs < ms) {
    const nowMs = performance.now();
    if (nowMs - lastMs > OFF_CPU_MS) offCpuMs += nowMs - lastMs;
    lastMs = nowMs;
  }
  const before = worked.get(route) ?? { count: 0, ms: 0 };
  worked.set(route, { count: before.count + requests, ms: before.ms + lastMs - startedMs });
  return {};
}

@Controller()
class WorkController {
  @Get('a')
  short() {
    return work('/a', 4);
  }
  @Get('b')
  async afterTimer() {
    await pause(5);
    return work('/b', 8);
  }
  @Get('c')
  async inPieces() {
    for (let i = 0; i < PIECES; i++) {
      work('/c', 3, 1 / PIECES);
      await pause(1);
    }
    return {};
  }
  @Get('d')
  long() {
    return work('/d', 25);
  }
  @Get('e')
  blocking() {
    return work('/e', 70);
  }
}

const ROUTES = ['/a', '/b', '/c', '/d', '/e'] as const;
const takeCounts = (): { count: number; ms: number }[] =>
  ROUTES.map((route) => worked.get(route) ?? { count: 0, ms: 0 });
const sumOf = <T>(items: readonly T[], figure: (item: T) => number): number =>
  items.reduce((sum, item) => sum + figure(item), 0);

describe.each(either('fastify'))('five routes of known work, mixed, on %s', (adapter) => {
  it(`have their shares of the loop within ${Math.round(100 * NEAR)} points, and their own CPU within 20 % or near its interval`, async ({
    skip,
  }) => {
    worked.clear();
    offCpuMs = 0;
    const running = await startApp(adapter, { metadata: { controllers: [WorkController] } });
    const load = await Load.start(running.port);
    const perf = running.app.get(PerfService);
    // Code is warm, and the watchdog's thread runs, before anything is compared.
    for (let i = 0; i < 10; i++) for (const path of ROUTES) await load.get(path);
    const before = takeCounts();
    const utilization = performance.eventLoopUtilization();
    const startedMs = performance.now();
    load.loop(ROUTES);
    const profile = await perf.profile({ seconds: SECONDS });
    const wallMs = performance.now() - startedMs;
    const { active } = performance.eventLoopUtilization(utilization);
    const after = takeCounts();
    await load.stopLoops();
    const { routes } = perf.snapshot();
    await load.close();
    await running.close();
    skip(profile.samples === 0, 'the sampler takes no samples while nothing blocks');
    const offCpu = offCpuMs / wallMs;
    skip(offCpu > MAX_OFF_CPU, `the machine was busy: ${(100 * offCpu).toFixed(0)} % of the time without a core`);

    expect(profile.samples).toBeGreaterThan(MIN_SAMPLES);
    const done = ROUTES.map((route, i) => ({
      route,
      count: after[i]!.count - before[i]!.count,
      ms: after[i]!.ms - before[i]!.ms,
    }));
    // Parsing, routing and writing are the request's own as well: at most an equal part of the loop's other busy time.
    const otherMs = (active - sumOf(done, ({ ms }) => ms)) / sumOf(done, ({ count }) => count);
    for (const { route, count, ms } of done) {
      const share = profile.routes.find((row) => row.route === `GET ${route}`)?.share ?? 0;
      expect(share, `share of ${route}`).toBeGreaterThan(ms / wallMs - NEAR);
      expect(share, `share of ${route}`).toBeLessThan((ms + count * otherMs) / wallMs + NEAR);

      const { mean, ci, samples } = routes.find((row) => row.route === route)!.time!.ownCpuMs!;
      expect(samples).toBeGreaterThanOrEqual(20);
      const [least, most] = [ms / count, ms / count + otherMs];
      // One of twenty is outside of its interval by chance, which the simulations count: here none is far outside.
      expect(mean, `own CPU of ${route}`).toBeGreaterThan(Math.min(0.8 * least, least - 1.5 * (ci[1] - mean)));
      expect(mean, `own CPU of ${route}`).toBeLessThan(Math.max(1.2 * most, most + 1.5 * (mean - ci[0])));
    }
  });
});
