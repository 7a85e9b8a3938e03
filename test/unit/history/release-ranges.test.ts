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

const minutes = (from: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => from + i * MINUTE_MS);

it('two releases that have served an hour together are compared by that hour', async () => {
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

it('after a rollback, what serves now is compared with what it has replaced', async () => {
  const a = [...minutes(ago(20), 600), ...minutes(ago(4), 240)];
  const ranges = await rangesOf('release', sourceOf({ a, b: minutes(ago(10), 360) }), 'a', now);
  expect(ranges).toMatchObject({
    atOnce: false,
    releases: { before: 'b', after: 'a' },
    before: { from: ago(8), to: ago(4) },
    after: { from: ago(4), to: now },
  });
});

it('a release that is deployed again is compared with the same hours of a week ago', async () => {
  const hours = (from: number, to: number): number[] => minutes(ago(from), (from - to) * 60);
  const source = sourceOf({ a: [...hours(300, 10), ...hours(8, 1)], b: [...hours(10, 8), ...hours(1, 0)] });
  const { before, after, atOnce } = await rangesOf('release', source, 'b', now);
  expect([atOnce, after, before.from]).toEqual([false, { from: ago(1), to: now }, ago(169)]);
});

it('a canary that has ended is compared by its own hours, its restart included', async () => {
  const source = sourceOf({
    a: minutes(ago(30), 1_800),
    b: [...minutes(ago(5), 60), ...minutes(ago(4, 5), 115)],
  });
  const range = { from: ago(5), to: ago(2) };
  expect(await rangesOf('release', source, 'a', now)).toMatchObject({ atOnce: true, before: range, after: range });
});
