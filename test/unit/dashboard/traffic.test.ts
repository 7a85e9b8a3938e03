import { describe, expect, it } from 'vitest';
import type { PerfSnapshot } from '../../../src/core/snapshot.js';
import { readEarlierCounts } from '../../../src/dashboard/recent-counts.js';
import { Traffic } from '../../../src/dashboard/traffic.js';
import { ScriptedHistory } from '../../fixtures/scripted-history.js';

describe('traffic of the page', () => {
  it('runs forwards after the wall clock was set back', () => {
    const traffic = new Traffic();
    const samples = [10_000, 12_000, 14_000, 11_000, 13_000, 15_000].map((at, i) => [at, i * 2_000] as const);
    for (const [at, nowMs] of samples) traffic.add({ at, eventLoop: null }, nowMs, null, null);
    expect(traffic.points.map(([at]) => at)).toEqual([10_000, 11_000, 13_000, 15_000]);
  });

  it('has the right rate of the minutes before the first sample, wherever they begin', async () => {
    const scripted = new ScriptedHistory(Date.UTC(2026, 0, 5));
    await scripted.minutes(10, (counters) => counters.requests('GET /users', 60, 20));
    scripted.counters.requests('GET /users', 30, 20);
    scripted.nowMs += 30_000;
    const snapshot = { at: scripted.nowMs, routes: [] } as unknown as PerfSnapshot;
    const { whole, spanMs } = await readEarlierCounts(snapshot, scripted.history, 3_600_000);
    expect(whole!.count / (spanMs / 1_000)).toBe(1);
  });
});
