import { describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import { History } from '../../../src/history/history.js';
import { MemoryTiers } from '../../../src/history/rows/memory.js';
import { windowOf } from '../../fixtures/history.js';
import { ScriptedCounters } from '../../fixtures/scripted-counters.js';
import { allOf } from '../../fixtures/steps.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const START = Date.UTC(2026, 0, 5);
const ROUTE = 'GET /users/:id';

/** A history whose clock and counters are scripted. */
class Scripted {
  nowMs = START;
  readonly counters = new ScriptedCounters();
  readonly history: History;

  constructor() {
    const report = new OncePerCause({ log() {}, warn() {}, error() {} }, () => 0);
    const own = { pod: 'pod-1', instance: 'pod-1/1/a', release: '1.0.0' };
    const parts = { own, store: null, keepDays: 35, maxBytes: 2 ** 26, counters: this.counters.all, report };
    this.history = new History({ ...parts, now: () => this.nowMs }, null);
    this.history.begin();
  }

  /** So many minutes, each with the same. */
  async minutes(count: number, each: (counters: ScriptedCounters, minute: number) => void): Promise<void> {
    for (let minute = 0; minute < count; minute++) {
      each(this.counters, minute);
      this.nowMs += MINUTE_MS;
      await this.history.tick();
    }
  }
}

describe('history', () => {
  it('has minutes for 6 hours, five minutes for 48 hours, and steps that are asked for', async () => {
    const scripted = new Scripted();
    await scripted.minutes(7 * 60, (counters) => counters.requests(ROUTE, 2, 20));
    const { nowMs, history } = scripted;
    const minutes = await history.history({ from: nowMs - 6 * HOUR_MS, to: nowMs });
    expect([minutes.stepMs, minutes.points.length, minutes.points[0]!.count]).toEqual([MINUTE_MS, 360, 2]);
    scripted.nowMs += 30_000;
    expect((await history.history({ from: nowMs - 6 * HOUR_MS, to: nowMs })).stepMs).toBe(MINUTE_MS);
    const windows = await history.history({ from: nowMs - 7 * HOUR_MS, to: nowMs });
    expect([windows.stepMs, windows.points.length, windows.points[0]!.count]).toEqual([5 * MINUTE_MS, 84, 10]);
    const quarters = await history.history({ from: nowMs - 6 * HOUR_MS, to: nowMs, stepMs: 15 * MINUTE_MS });
    expect([quarters.stepMs, quarters.points.length, quarters.points[0]!.count]).toEqual([15 * MINUTE_MS, 24, 30]);
    const finer = await history.history({ from: nowMs - 7 * HOUR_MS, to: nowMs, stepMs: MINUTE_MS });
    expect(finer.stepMs).toBe(5 * MINUTE_MS);
    const longer = await history.history({ from: nowMs - 6 * HOUR_MS, to: nowMs, stepMs: MINUTE_MS + 1 });
    expect([longer.stepMs, longer.points[0]!.count]).toEqual([2 * MINUTE_MS, 4]);
    const longest = await history.history({ from: nowMs - 6 * HOUR_MS, to: nowMs, stepMs: 8.64e15 });
    expect(longest.points.map(({ count }) => count)).toEqual([7 * 60 * 2]);
  });

  it('has what latency and upstream count, and a step of a process without requests is 0', async () => {
    const scripted = new Scripted();
    await scripted.minutes(3, (counters, minute) => {
      if (minute === 1) return;
      counters.requests(ROUTE, 8, 1_200, { upstreamMs: 900 });
      counters.requests(ROUTE, 2, 40, { status: 503 });
      counters.aborted(ROUTE, 3);
    });
    const { points } = await scripted.history.history({ from: START, to: START + HOUR_MS }, { route: ROUTE });
    expect(points.map(({ count }) => count)).toEqual([13, 0, 13, 0]);
    expect(points[2]).toMatchObject({
      at: START + 2 * MINUTE_MS,
      errors: 2,
      aborted: 3,
      over: [{ ms: 1_000, count: 8 }],
      upstreamMs: 720,
    });
    const { durationMs } = points[2]!;
    expect(durationMs.mean).toBeCloseTo(968, 6);
    for (const [ms, truth] of [
      [durationMs.p50, 1_200],
      [durationMs.max, 1_200],
      [durationMs.p99, 1_200],
    ] as const)
      expect(Math.abs(ms / truth - 1)).toBeLessThan(0.016);
  });

  it('has a block of a request that is known when the request has ended, or before that', async () => {
    const scripted = new Scripted();
    await scripted.minutes(3, (counters, minute) => {
      if (minute !== 1) counters.requests(ROUTE, 1, 900);
      if (minute === 1) counters.blocked(ROUTE, 800);
    });
    for (const route of [null, ROUTE]) {
      const { points } = await scripted.history.history({ from: START, to: START + 3 * MINUTE_MS }, { route });
      expect(points.map(({ count, blockedMs }) => [count, blockedMs])).toEqual([
        [1, 0],
        [0, 800],
        [1, 0],
      ]);
    }
  });

  it('begins with a step that is there as a whole, from coarser buckets where minutes do not reach back to it', async () => {
    const scripted = new Scripted();
    await scripted.minutes(8 * 60 + 30, (counters) => counters.requests(ROUTE, 2, 20));
    const { nowMs, history } = scripted;
    const last = { from: nowMs - 6 * HOUR_MS, to: nowMs };
    const { stepMs, points } = await history.history({ ...last, stepMs: HOUR_MS });
    expect([stepMs, points[0]!.at, points.map(({ count }) => count)]).toEqual([
      HOUR_MS,
      START + 2 * HOUR_MS,
      [120, 120, 120, 120, 120, 120, 60],
    ]);
    // Such steps only minutes have.
    expect((await history.history({ ...last, stepMs: 7 * MINUTE_MS })).stepMs).toBe(7 * MINUTE_MS);
  });

  it('counts a request once, whoever reads meanwhile, and when the clock is set back', async () => {
    const scripted = new Scripted();
    const { history } = scripted;
    const total = async (): Promise<number> => {
      const { points } = await history.history({ from: START, to: START + DAY_MS });
      return points.reduce((sum, { count }) => sum + count, 0);
    };
    for (let minute = 1; minute <= 10; minute++) {
      scripted.counters.requests(ROUTE, 5, 20);
      scripted.nowMs += 20_000;
      expect(await total()).toBe(10 * minute - 5);
      scripted.counters.requests(ROUTE, 5, 20);
      scripted.nowMs += minute === 5 ? -90_000 : 40_000;
      await history.tick();
      expect(await total()).toBe(10 * minute);
    }
  });

  it('tells of what is now when the clock was set back by half an hour', async () => {
    const scripted = new Scripted();
    await scripted.minutes(60, (counters) => counters.requests(ROUTE, 5, 20));
    scripted.nowMs -= 30 * MINUTE_MS;
    await scripted.minutes(3, (counters) => counters.requests(ROUTE, 7, 20));
    const { nowMs, history } = scripted;
    const { points } = await history.history({ from: nowMs - 3 * MINUTE_MS, to: nowMs });
    expect(points.reduce((sum, { count }) => sum + count, 0)).toBe(3 * 12);
  });

  it('puts what was counted before the clock was set forward by hours into the last minute, not between', async () => {
    const scripted = new Scripted();
    await scripted.minutes(2, (counters) => counters.requests(ROUTE, 5, 20));
    scripted.counters.requests(ROUTE, 7, 20);
    scripted.nowMs += 4 * HOUR_MS;
    await scripted.minutes(1, (counters) => counters.requests(ROUTE, 1, 20));
    const { points } = await scripted.history.history({ from: START, to: scripted.nowMs, stepMs: MINUTE_MS });
    const counted = points.filter(({ count }) => count > 0).map(({ at, count }) => [(at - START) / MINUTE_MS, count]);
    expect(counted).toEqual([
      [0, 5],
      [1, 5],
      [4 * 60 + 2, 8],
    ]);
  });

  it('keeps what a bucket had when the clock is set back by hours, or into a bucket that has ended late', async () => {
    for (const [lateMs, backMs] of [
      [0, 2 * HOUR_MS],
      [3 * MINUTE_MS + 30_000, MINUTE_MS],
    ] as const) {
      const scripted = new Scripted();
      await scripted.minutes(177, (counters) => counters.requests(ROUTE, 5, 20));
      scripted.counters.requests(ROUTE, 5, 20);
      scripted.nowMs += lateMs;
      await scripted.history.tick();
      scripted.nowMs -= backMs;
      await scripted.minutes(90, (counters) => counters.requests(ROUTE, 5, 40));
      for (const stepMs of [MINUTE_MS, 5 * MINUTE_MS, HOUR_MS]) {
        const range = { from: START, to: START + 6 * HOUR_MS, stepMs };
        const { points } = await scripted.history.history(range);
        expect(points.reduce((sum, { count }) => sum + count, 0)).toBe(5 * 268);
      }
    }
  });

  it('compares two ranges: what is slower, by how much and why, and what has not changed', async () => {
    const scripted = new Scripted();
    const half = 3 * 60;
    await scripted.minutes(2 * half, (counters, minute) => {
      const [jitter, isAfter] = [(minute * 7) % 5, minute >= half];
      counters.requests(ROUTE, 10, 100 + jitter + (isAfter ? 60 : 0), { upstreamMs: 80 + jitter + (isAfter ? 60 : 0) });
      counters.requests('GET /cart', 10, 50 + jitter);
    });
    const middle = START + half * MINUTE_MS;
    const before = { from: START + MINUTE_MS, to: middle };
    const compared = await scripted.history.compare({ before, after: { from: middle, to: scripted.nowMs } });
    const [first, second] = compared.routes;
    expect([first!.route, second!.route]).toEqual([ROUTE, 'GET /cart']);
    expect(first!.latency.value).toBeCloseTo(60 / 102, 3);
    expect(first!.latency.ci[0]).toBeGreaterThan(0.5);
    expect(first!.latency.ci[1]).toBeLessThan(0.7);
    expect(first!.because).toEqual([{ part: 'upstream', name: 'http api.github.com', share: expect.closeTo(1, 6) }]);
    const [low, high] = second!.latency.ci;
    expect(low <= 0 && high >= 0).toBe(true);
    expect(compared.mix).toBeCloseTo(0, 6);
    expect(compared.caveats).toEqual([]);
    expect(compared.text).toContain('GET /users/:id: slower, mean 102 → 162 ms, +59 %');
    expect(compared.text).toContain('100 % of it is http api.github.com.');
    expect(compared.text).toContain('1 other routes have not changed for sure.');
    const one = await scripted.history.compare(
      { before, after: { from: middle, to: scripted.nowMs } },
      { route: 'GET /cart' },
    );
    expect([one.whole.route, one.routes.length]).toEqual(['GET /cart', 1]);
  });

  it('tells apart what the mix of routes alone explains', async () => {
    const scripted = new Scripted();
    await scripted.minutes(240, (counters, minute) => {
      counters.requests('GET /fast', minute < 120 ? 18 : 2, 10 + (minute % 3));
      counters.requests('GET /slow', minute < 120 ? 2 : 18, 500 + (minute % 3));
    });
    const middle = START + 2 * HOUR_MS;
    const { whole, mix, text } = await scripted.history.compare({
      before: { from: START, to: middle },
      after: { from: middle, to: scripted.nowMs },
    });
    expect(whole.latency.value).toBeGreaterThan(5);
    expect(mix).toBeCloseTo(whole.latency.value, 2);
    expect(whole.because[0]).toMatchObject({ part: 'mix', share: expect.closeTo(1, 2) });
    expect(text).toContain('No route has changed for sure.');
  });

  it('counts a GraphQL request once, not its resolvers as well', async () => {
    const scripted = new Scripted();
    await scripted.minutes(240, (counters, minute) => {
      const jitter = minute % 3;
      counters.requests('POST /graphql', 10, 100 + jitter);
      counters.requests(ROUTE, minute < 120 ? 10 : 20, 10 + jitter);
      counters.requests('GRAPHQL Query.users', minute < 120 ? 10 : 200, 90 + jitter);
    });
    const middle = START + 2 * HOUR_MS;
    const { whole, mix, routes } = await scripted.history.compare({
      before: { from: START, to: middle },
      after: { from: middle, to: scripted.nowMs },
    });
    expect(whole.latency.value).toBeCloseTo(41 / 56 - 1, 2);
    expect(mix).toBeCloseTo(whole.latency.value, 2);
    expect(whole.because[0]).toMatchObject({ part: 'mix', share: expect.closeTo(1, 2) });
    expect(routes.map(({ route }) => route)).toContain('GRAPHQL Query.users');
  });

  it('compares many routes without keeping the event loop', async () => {
    const scripted = new Scripted();
    const routes = Array.from({ length: 250 }, (_, i) => `GET /route-${i}/:id`);
    for (let window = 0; window < 8; window++) {
      const isAfter = window >= 4;
      for (const [i, route] of routes.entries())
        scripted.counters.requests(route, 2, 100 + (window % 4) + (isAfter ? i : 0), { upstreamMs: 50 });
      scripted.nowMs += 5 * MINUTE_MS;
      await scripted.history.tick();
    }
    const middle = START + 20 * MINUTE_MS;
    const after = { from: middle, to: scripted.nowMs };
    const startMs = performance.now();
    let [longestMs, lastMs, running] = [0, startMs, true];
    const turn = (): void => {
      longestMs = Math.max(longestMs, performance.now() - lastMs);
      lastMs = performance.now();
      if (running) setImmediate(turn);
    };
    turn();
    const { routes: compared } = await scripted.history.compare({ before: { from: START, to: middle }, after });
    running = false;
    turn();
    expect(compared.length).toBe(250);
    expect(longestMs / (lastMs - startMs)).toBeLessThan(0.5);
  });

  it('compares the last day with the day before from memory alone', async () => {
    const scripted = new Scripted();
    for (let window = 0; window < 48 * 12; window++) {
      scripted.counters.requests(ROUTE, 10, (window < 24 * 12 ? 50 : 75) + (window % 4));
      scripted.nowMs += 5 * MINUTE_MS;
      await scripted.history.tick();
    }
    const { before, after, whole, caveats } = await scripted.history.compare('day');
    expect([before.to - before.from, after.to - after.from].map((ms) => Math.round(ms / HOUR_MS))).toEqual([24, 24]);
    expect(whole.before.count + whole.after.count).toBeGreaterThanOrEqual(5_740);
    expect(whole.latency.value).toBeGreaterThan(0.45);
    expect(caveats).toEqual([]);
  });

  it('compares ranges of one length and of the same hours, the running bucket included', async () => {
    const scripted = new Scripted();
    scripted.nowMs += 3 * HOUR_MS + 17 * MINUTE_MS + 30_000;
    for (const [what, agoMs] of [
      ['day', DAY_MS],
      ['week', 7 * DAY_MS],
    ] as const) {
      const { before, after } = await scripted.history.compare(what);
      expect([after.to - after.from, before.to - before.from]).toEqual([DAY_MS, DAY_MS]);
      expect(after.from - before.from).toBe(agoMs);
      expect(after.to).toBeGreaterThan(scripted.nowMs);
    }
  });

  it('says what it does not know', async () => {
    const scripted = new Scripted();
    await scripted.minutes(2, (counters) => counters.requests(ROUTE, 1, 5));
    const week = await scripted.history.compare('week');
    expect(week.caveats).toEqual(['Nothing is known of the range before.']);
    expect(week.text).toBe(week.caveats.join(' '));
    expect(week.whole.latency).toEqual({ value: 0, ci: [-Infinity, Infinity] });
    const release = await scripted.history.compare('release');
    expect(release.caveats).toEqual(['No release before 1.0.0 is known.', 'Nothing is known of the range before.']);
    expect(release.text).toBe(release.caveats.join(' '));
    expect([release.whole.before.count, release.whole.after.count]).toEqual([0, 2]);
  });
});

describe('memory', () => {
  it('is bounded: two days are kept, and of more bytes than allowed the newest', () => {
    const memory = new MemoryTiers(40_000);
    const all = new MemoryTiers(2 ** 26);
    for (let minute = 0; minute < 50 * 60; minute++) {
      const at = START + minute * MINUTE_MS;
      for (const tiers of [memory, all]) {
        allOf(tiers.add(at, windowOf(3)));
        allOf(tiers.finish(at + MINUTE_MS));
      }
    }
    const end = START + 50 * HOUR_MS;
    expect(memory.bytes).toBeLessThanOrEqual(40_000);
    expect(allOf(all.buckets('5m', { from: 0, to: end })).length).toBeLessThanOrEqual(48 * 12 + 1);
    expect(allOf(all.buckets('1m', { from: 0, to: end })).length).toBeLessThanOrEqual(6 * 60 + 1);
    expect(memory.has('5m', end - 5 * MINUTE_MS)).toBe(true);
  });
});
