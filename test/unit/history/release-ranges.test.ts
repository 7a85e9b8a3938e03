import { expect, it } from 'vitest';
import { rangesOf } from '../../../src/history/compare/ranges.js';
import type { HistorySource, ReadBucket } from '../../../src/history/reader.js';
import { bucketOf, HOUR_MS, keptMs, TIERS } from '../../../src/history/rows/tiers.js';

const MINUTE_MS = 60_000;
const now = Date.UTC(2026, 10, 27, 12, 30);
const ago = (hours: number, minutes = 0): number => now - hours * HOUR_MS + minutes * MINUTE_MS;

/** What a store holds of releases that have served in these minutes. */
function sourceOf(served: Readonly<Record<string, readonly number[]>>): HistorySource {
  return {
    read: async (tier, { from, to }, take) => {
      const { stepMs } = TIERS.find((rule) => rule.tier === tier)!;
      for (const [release, minutes] of Object.entries(served))
        for (const at of new Set(minutes.map((minute) => bucketOf(minute, stepMs))))
          if (at >= from && at < to && at >= now - keptMs(tier, 35)) take({ at, release } as ReadBucket);
      return true;
    },
  };
}

it('two releases that an hour’s bucket holds one after the other have not served at once', async () => {
  const a = [ago(75), ago(72, 5)];
  const b = [ago(72, 20), ago(48, 10), ago(6, 10), now - MINUTE_MS];
  const ranges = await rangesOf('release', sourceOf({ a, b }), 'b', now);
  expect(ranges.atOnce).toBe(false);
  expect(ranges.after.to - ranges.after.from).toBeGreaterThan(70 * HOUR_MS);
});

it('two releases that have served an hour together are compared by that hour', async () => {
  const minutes = (from: number, count: number): number[] =>
    Array.from({ length: count }, (_, i) => from + i * MINUTE_MS);
  const a = minutes(ago(5), 180);
  const b = minutes(ago(3), 180);
  const ranges = await rangesOf('release', sourceOf({ a, b }), 'b', now);
  expect(ranges).toMatchObject({
    atOnce: true,
    before: { from: ago(3), to: ago(2) },
    after: { from: ago(3), to: ago(2) },
  });
});

it('a release has its earlier days, also when nothing ran where a finer history begins', async () => {
  const source = sourceOf({ a: [ago(100), ago(80)], b: [ago(72), ago(60), now - MINUTE_MS] });
  const { after } = await rangesOf('release', source, 'b', now);
  expect(after.from).toBeLessThanOrEqual(ago(72));
});

it('a release is compared with the same hours of a week ago, the running one included', async () => {
  const source = sourceOf({ a: [ago(400), ago(6)], b: [ago(5), now - MINUTE_MS] });
  const { before, after } = await rangesOf('release', source, 'b', now);
  expect(after).toEqual({ from: ago(5), to: now });
  expect(before).toEqual({ from: ago(5) - 168 * HOUR_MS, to: bucketOf(now, HOUR_MS) + HOUR_MS - 168 * HOUR_MS });
});
