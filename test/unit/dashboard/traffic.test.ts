import { describe, expect, it } from 'vitest';
import { Traffic } from '../../../src/dashboard/traffic.js';

describe('traffic of the page', () => {
  it('runs forwards after the wall clock was set back', () => {
    const traffic = new Traffic();
    const samples = [10_000, 12_000, 14_000, 11_000, 13_000, 15_000].map((at, i) => [at, i * 2_000] as const);
    for (const [at, nowMs] of samples) traffic.add({ at, eventLoop: null }, nowMs, null);
    expect(traffic.points.map(([at]) => at)).toEqual([10_000, 11_000, 13_000, 15_000]);
  });
});
