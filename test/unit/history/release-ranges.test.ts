import { describe, expect, it } from 'vitest';
import { inOneTurn } from '../../../src/core/turns.js';
import { compareRanges } from '../../../src/history/compare/compare.js';
import { rangesOf } from '../../../src/history/compare/ranges.js';
import type { HistorySource, ReadBucket } from '../../../src/history/reader.js';
import { bucketOf, HOUR_MS, keptMs, MINUTE_MS, TIERS } from '../../../src/history/rows/tiers.js';
import { encodeWindow, EncodedWindow } from '../../../src/history/rows/window-codec.js';
import { windowOf } from '../../fixtures/history.js';

const now = Date.UTC(2026, 10, 27, 12, 30);
const ago = (hours: number, minutes = 0): number => now - hours * HOUR_MS + minutes * MINUTE_MS;

const window = new EncodedWindow(inOneTurn(encodeWindow(windowOf(10))));

/** What a store holds of releases that have served in these minutes, each bucket with ten requests. */
function sourceOf(served: Readonly<Record<string, readonly number[]>>): HistorySource {
  return {
    read: async (tier, { from, to }, take) => {
      const { stepMs } = TIERS.find((rule) => rule.tier === tier)!;
      for (const [release, minutes] of Object.entries(served))
        for (const at of new Set(minutes.map((minute) => bucketOf(minute, stepMs))))
          if (at >= from && at < to && at >= now - keptMs(tier, 35)) take({ at, release, window } as ReadBucket);
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

it('a canary beside a release is not the one before it, and the newer one where none was before', async () => {
  const [a, canary] = [minutes(ago(30), 1_800), minutes(ago(10), 540)];
  const before = minutes(ago(50), 1_200);
  expect(await rangesOf('release', sourceOf({ before, a, canary }), 'a', now)).toMatchObject({
    releases: { before: 'before', after: 'a' },
    atOnce: false,
  });
  for (const asked of ['a', 'canary'])
    expect(await rangesOf('release', sourceOf({ a, canary }), asked, now)).toMatchObject({
      releases: { before: 'a', after: 'canary' },
      atOnce: true,
    });
  const { caveats } = await rangesOf('release', sourceOf({ a, next: minutes(ago(0, -5), 5) }), 'a', now);
  expect(caveats).toEqual(['No release before a is known.']);
});

describe('a release that is away', () => {
  const spanOf = async (served: Readonly<Record<string, readonly number[]>>, release: string) => {
    const { before, after, releases, atOnce } = await rangesOf('release', sourceOf(served), release, now);
    return { before, after, release: releases?.before, atOnce };
  };
  const minutesUntil = (from: number, to: number): number[] => minutes(from, (to - from) / MINUTE_MS);

  it.each(['a', 'b'])('as a canary, for some minutes, has its hours beside the other: %s', async (release) => {
    const b = [...minutesUntil(ago(10), ago(1, 30)), ...minutesUntil(ago(1, 42), now)];
    const range = { from: ago(10), to: now };
    expect(await spanOf({ a: minutesUntil(ago(20), now), b }, release)).toMatchObject({ before: range, atOnce: true });
  });

  it('as a canary, again and again, is soon compared with what runs beside it', async () => {
    const b = [0, 30, 60].flatMap((minute) => minutes(ago(2, minute + 25), 15));
    const range = { from: ago(2, 25), to: ago(2, 100) };
    expect(await spanOf({ a: minutesUntil(ago(20), now), b }, 'b')).toMatchObject({ before: range, atOnce: true });
  });

  it('as a canary, for hours, has the last that both have served at once', async () => {
    const b = [...minutesUntil(ago(20), ago(10)), ...minutes(ago(0, -18), 18)];
    const range = { from: ago(20), to: ago(10) };
    expect(await spanOf({ a: minutesUntil(ago(30), now), b }, 'b')).toMatchObject({ before: range, atOnce: true });
  });

  it('while a canary that is taken back serves everybody, is compared by the hours before that', async () => {
    const a = [...minutesUntil(ago(20), ago(10)), ...minutesUntil(ago(4), now)];
    const range = { from: ago(14), to: ago(10) };
    const served = { a, b: minutesUntil(ago(14), ago(4)) };
    expect(await spanOf(served, 'a')).toMatchObject({ before: range, after: range, atOnce: true });
  });

  it('while its canary, of some hours, serves everybody for more than some minutes, has come again', async () => {
    const a = [...minutesUntil(ago(20), ago(3)), ...minutesUntil(ago(2), now)];
    const b = minutesUntil(ago(6), ago(2));
    const range = { from: ago(6), to: ago(3) };
    expect(await rangesOf('release', sourceOf({ a, b }), 'a', now)).toMatchObject({
      releases: { before: 'b', after: 'a' },
      before: range,
      after: range,
    });
    const restarted = [...minutesUntil(ago(20), ago(3)), ...minutesUntil(ago(3, 8), now)];
    expect(await rangesOf('release', sourceOf({ a: restarted, b }), 'a', now)).toMatchObject({
      releases: { before: 'a', after: 'b' },
      before: { from: ago(6), to: ago(2) },
    });
  });

  it('while a bad deploy lasts some minutes, counts from then on and is the one before the next', async () => {
    const served = {
      a: [...minutesUntil(ago(80), ago(6, -9)), ...minutesUntil(ago(6), ago(1))],
      b: minutes(ago(6, -9), 9),
    };
    expect(await spanOf(served, 'a')).toMatchObject({
      release: 'b',
      before: { from: bucketOf(ago(6, -9), 5 * MINUTE_MS) },
      after: { from: ago(6) },
    });
    expect(await spanOf({ ...served, c: minutesUntil(ago(1), now) }, 'c')).toMatchObject({
      release: 'a',
      before: { from: ago(2), to: ago(1) },
      after: { from: ago(1), to: now },
    });
  });

  it('as a canary that was taken back is not the one before the next', async () => {
    const served = { a: minutesUntil(ago(80), ago(5)), b: minutesUntil(ago(10), ago(7)), c: minutesUntil(ago(5), now) };
    expect(await spanOf(served, 'c')).toMatchObject({ release: 'a', before: { from: ago(10), to: ago(5) } });
  });

  it('and is seen for one more minute has its last hours, and is not the one before', async () => {
    const a = [...minutesUntil(ago(77), ago(5)), ago(5, 30)];
    const c = minutesUntil(ago(5), now);
    const before = { from: ago(10, 1), to: ago(5, 31) };
    expect(await spanOf({ a, c }, 'c')).toMatchObject({ release: 'a', before, atOnce: false });
    const b = minutesUntil(ago(20), ago(5));
    for (const seen of [ago(5, 30), ago(12)])
      expect(await spanOf({ a: [...minutesUntil(ago(77), ago(20)), seen], b, c }, 'c')).toMatchObject({
        release: 'b',
        before: { from: ago(10), to: ago(5) },
      });
  });

  it('is said to have had as much traffic as when it served', async () => {
    const a = [...minutesUntil(ago(6), ago(3)), ...minutes(ago(1, -20), 20)];
    const source = sourceOf({ a, b: minutesUntil(ago(3), ago(1, -20)), c: minutesUntil(ago(1), now) });
    const ranges = await rangesOf('release', source, 'c', now);
    expect(ranges).toMatchObject({ before: { from: ago(3, -40), to: ago(1) }, awayMs: 100 * MINUTE_MS });
    const { confounded } = await compareRanges(source, ranges, null, now);
    expect(confounded).toBe('confounded: deployed to all pods at once');
  });

  it('and stands in an hour of which the finer history knows less goes on there', async () => {
    const served = { a: minutesUntil(ago(80), now), b: minutes(ago(48, -25), 5) };
    expect((await spanOf(served, 'a')).after.from).toBeLessThanOrEqual(ago(79));
  });
});
