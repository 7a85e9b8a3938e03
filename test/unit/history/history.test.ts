import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { HistoryStore } from '../../../src/index.js';
import type { HistoryRow } from '../../../src/history/rows/row.js';
import { MemoryTiers } from '../../../src/history/rows/memory.js';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/history/rows/tiers.js';
import { windowOf } from '../../fixtures/history.js';
import { ScriptedHistory } from '../../fixtures/scripted-history.js';
import { sharedStore } from '../../fixtures/shared-history.js';

const START = Date.UTC(2026, 0, 5);
const ROUTE = 'GET /users/:id';

describe('history', () => {
  it('has minutes for 6 hours, five minutes for 48 hours, and steps that are asked for', async () => {
    const scripted = new ScriptedHistory(START);
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
    const scripted = new ScriptedHistory(START);
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
    const scripted = new ScriptedHistory(START);
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
    const scripted = new ScriptedHistory(START);
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
    const scripted = new ScriptedHistory(START);
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
    const scripted = new ScriptedHistory(START);
    await scripted.minutes(60, (counters) => counters.requests(ROUTE, 5, 20));
    scripted.nowMs -= 30 * MINUTE_MS;
    await scripted.minutes(3, (counters) => counters.requests(ROUTE, 7, 20));
    const { nowMs, history } = scripted;
    const { points } = await history.history({ from: nowMs - 3 * MINUTE_MS, to: nowMs });
    expect(points.reduce((sum, { count }) => sum + count, 0)).toBe(3 * 12);
  });

  it('puts what was counted before the clock was set forward by hours into the last minute, not between', async () => {
    const scripted = new ScriptedHistory(START);
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
      const scripted = new ScriptedHistory(START);
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
});

describe('a store', () => {
  const total = async ({ nowMs, history }: ScriptedHistory): Promise<number> => {
    const { points } = await history.history({ from: START, to: nowMs + 1 });
    return points.reduce((sum, { count }) => sum + count, 0);
  };

  it('has no request twice that memory forgets while somebody reads', async () => {
    const rows: HistoryRow[] = [];
    let meanwhile = async (): Promise<void> => {};
    const store: HistoryStore = {
      name: 'own',
      shared: false,
      open: async () => ({
        write: async (finished) => void rows.push(...finished),
        read: async function* (tier, { from, to }) {
          await meanwhile();
          for (const row of rows) if (row.tier === tier && row.at >= from && row.at < to) yield row;
        },
        close: async () => {},
      }),
    };
    const scripted = new ScriptedHistory(START, { store });
    await scripted.minutes(48 * 12 + 1, (counters) => counters.requests(ROUTE, 1, 20), 5 * MINUTE_MS);
    meanwhile = async () => {
      meanwhile = async () => {};
      await scripted.minutes(4, (counters) => counters.requests(ROUTE, 0, 20), 5 * MINUTE_MS);
    };
    const { points } = await scripted.history.history({ from: START + 10 * MINUTE_MS, to: scripted.nowMs });
    expect(Math.max(...points.map(({ count }) => count))).toBe(1);
  });

  it('that breaks off in the middle of a read leaves what memory knows, and nothing twice', async () => {
    let rows: HistoryRow[] = [];
    const store: HistoryStore = {
      name: 'torn',
      shared: false,
      open: async () => ({
        write: async (finished) => void (rows = [...rows, ...finished]),
        read: async function* (tier) {
          yield* rows.filter((row) => row.tier === tier).map((row) => ({ ...row, instance: 'another' }));
          throw new Error('torn');
        },
        close: async () => {},
      }),
    };
    const pod = new ScriptedHistory(START, { store });
    await pod.minutes(3, (counters) => counters.requests(ROUTE, 2, 20));
    expect(await total(pod)).toBe(6);
  });

  it('tells with a series which releases came in it', async () => {
    const store = sharedStore();
    const run = async (release: string, nowMs: number): Promise<ScriptedHistory> => {
      const own = { pod: 'a', instance: `a/${release}`, release };
      const pod = new ScriptedHistory(nowMs, { store, own });
      await pod.minutes(3, (counters) => counters.requests(ROUTE, 2, 20));
      return pod;
    };
    const { nowMs } = await run('1.0.0', START);
    const { history } = await run('1.0.1', nowMs);
    const { releases } = await history.history({ from: START, to: START + HOUR_MS });
    expect(releases).toEqual([{ at: START + 3 * MINUTE_MS, release: '1.0.1' }]);
  });

  it('that many pods share and that is away for an hour has every request when it is back, however often somebody reads', async () => {
    let isAway = false;
    const store = sharedStore({ isAway: () => isAway });
    const [pod, other] = [new ScriptedHistory(START, { store }), new ScriptedHistory(START, { store })];
    isAway = true;
    await pod.minutes(60, (counters) => counters.requests(ROUTE, 1, 20));
    for (let look = 0; look < 200; look++) {
      pod.counters.requests(ROUTE, 1, 20);
      await total(pod);
    }
    isAway = false;
    await pod.tick();
    other.nowMs = pod.nowMs;
    expect(await total(other)).toBe(60 + 200);
  });

  it('that many pods share and that takes no row makes nobody wait for more than five seconds', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const store = { ...sharedStore(), open: async () => ({ ...(await sharedStore().open({} as never)), write: hang }) };
    const pod = new ScriptedHistory(START, { store });
    pod.counters.requests(ROUTE, 3, 20);
    const counted = total(pod);
    // A busy machine makes the read begin some turns later.
    while (vi.getTimerCount() === 0) await new Promise(setImmediate);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await counted).toBe(3);
  });

  it('that many pods share is not said to fail where somebody reads when the application has closed', async () => {
    const warnings: string[] = [];
    const warn = (line: string): unknown => warnings.push(line);
    const pod = new ScriptedHistory(START, { store: sharedStore(), warn });
    await pod.minutes(1, (counters) => counters.requests(ROUTE, 3, 20));
    await pod.history.close(5_000);
    expect([await total(pod), warnings]).toEqual([3, []]);
  });
});

const hang = (): Promise<void> => new Promise(() => {});

describe('memory', () => {
  it('is bounded: two days are kept, and of more bytes than allowed the newest', async () => {
    const memory = new MemoryTiers(40_000);
    const all = new MemoryTiers(2 ** 26);
    for (let minute = 0; minute < 50 * 60; minute++) {
      const at = START + minute * MINUTE_MS;
      for (const tiers of [memory, all]) {
        await tiers.add(at, windowOf(3));
        await tiers.finish(at + MINUTE_MS);
      }
    }
    const end = START + 50 * HOUR_MS;
    expect(memory.bytes).toBeLessThanOrEqual(40_000);
    expect(all.buckets('5m', { from: 0, to: end }).length).toBeLessThanOrEqual(48 * 12 + 1);
    expect(all.buckets('1m', { from: 0, to: end }).length).toBeLessThanOrEqual(6 * 60 + 1);
    expect(memory.buckets('5m', { from: end - 5 * MINUTE_MS, to: end }).length).toBe(1);
  });
});
