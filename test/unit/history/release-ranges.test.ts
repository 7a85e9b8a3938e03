import { describe, expect, it } from 'vitest';
import { findRanges } from '../../../src/history/compare/ranges.js';
import type { HistorySource, ReadBucket } from '../../../src/history/history-store.js';
import { startBucket, HOUR_MS, keptMs, MINUTE_MS, TIERS } from '../../../src/history/rows/tiers.js';
import { encodeWindow, EncodedWindow } from '../../../src/history/rows/encoded-window.js';
import { windowOf } from '../../fixtures/history.js';

const now = Date.UTC(2026, 10, 27, 12, 30);
const ago = (hours: number, minutes = 0): number => now - hours * HOUR_MS + minutes * MINUTE_MS;

const window = new EncodedWindow(encodeWindow(windowOf(10)));

/** What a store holds of releases that have served in these minutes, each bucket with ten requests. */
function sourceOf(served: Readonly<Record<string, readonly number[]>>): HistorySource {
  return {
    read: async (tier, { from, to }, begin) => {
      const take = begin();
      const { stepMs } = TIERS.find((rule) => rule.tier === tier)!;
      for (const [release, minutes] of Object.entries(served))
        for (const at of new Set(minutes.map((minute) => startBucket(minute, stepMs))))
          if (at >= from && at < to && at >= now - keptMs(tier, 35)) take({ at, release, window } as ReadBucket);
      return true;
    },
  };
}

const minutesUntil = (from: number, to: number): number[] =>
  Array.from({ length: (to - from) / MINUTE_MS }, (_, i) => from + i * MINUTE_MS);

describe("compare('release')", () => {
  it('takes the hours that both have served, where there is one: a canary', async () => {
    const source = sourceOf({ a: minutesUntil(ago(30), now), b: minutesUntil(ago(3), now) });
    expect(await findRanges('release', source, 'b', now)).toMatchObject({
      releases: { before: 'a', after: 'b', overlap: true },
      before: { from: ago(3), to: now },
      after: { from: ago(3), to: now },
    });
  });

  it('takes no deploy for a canary, whether minutes or hours know of it', async () => {
    const rolling = sourceOf({ a: minutesUntil(ago(30), ago(3, 10)), b: minutesUntil(ago(3), now) });
    expect((await findRanges('release', rolling, 'b', now)).releases).toMatchObject({ overlap: false });
    const long = sourceOf({ a: minutesUntil(ago(90), ago(72, 5)), b: minutesUntil(ago(72, 20), now) });
    const { releases, after } = await findRanges('release', long, 'b', now);
    expect([releases?.overlap, after.to - after.from > 70 * HOUR_MS]).toEqual([false, true]);
  });

  it('takes the same hours of a week ago, the running one included, where the release before was there', async () => {
    const source = sourceOf({ a: minutesUntil(ago(400), ago(5)), b: minutesUntil(ago(5), now) });
    const { before, after } = await findRanges('release', source, 'b', now);
    expect(after).toEqual({ from: ago(5), to: now });
    expect(before).toEqual({ from: ago(173), to: startBucket(now, HOUR_MS) + HOUR_MS - 168 * HOUR_MS });
  });

  it('takes as long before the release came where it was not, and says so', async () => {
    const source = sourceOf({ a: minutesUntil(ago(20), ago(4)), b: minutesUntil(ago(4), now) });
    expect(await findRanges('release', source, 'b', now)).toMatchObject({
      before: { from: ago(8), to: ago(4) },
      after: { from: ago(4), to: now },
      caveats: ['Release a has not served the same hours a week ago: the hours before are taken.'],
    });
  });

  it('finds both in one bucket: a restart with a new release', async () => {
    const source = sourceOf({ a: minutesUntil(ago(0, -9), ago(0, -5)), b: minutesUntil(ago(0, -5), now) });
    const { releases, before, after } = await findRanges('release', source, 'b', now);
    expect(releases).toEqual({ before: 'a', after: 'b', overlap: false });
    expect([before.to > ago(0, -9), after.from <= ago(0, -5)]).toEqual([true, true]);
  });

  it('counts a release from when it came again after a rollback', async () => {
    const a = [...minutesUntil(ago(20), ago(10)), ...minutesUntil(ago(4), now)];
    expect(await findRanges('release', sourceOf({ a, b: minutesUntil(ago(10), ago(4)) }), 'a', now)).toMatchObject({
      releases: { before: 'b', after: 'a' },
      before: { from: ago(8), to: ago(4) },
      after: { from: ago(4), to: now },
    });
  });

  it('goes on through a restart, when nothing ran', async () => {
    const b = [...minutesUntil(ago(6), ago(4)), ...minutesUntil(ago(3), now)];
    const { after } = await findRanges('release', sourceOf({ a: minutesUntil(ago(20), ago(6)), b }), 'b', now);
    expect(after.from).toBe(ago(6));
  });

  it('says where there is nothing to compare with', async () => {
    const caveatsFor = async (release: string) =>
      (await findRanges('release', sourceOf({ a: minutesUntil(ago(5), now) }), release, now)).caveats;
    expect(await caveatsFor('a')).toEqual(['No release before a is known.']);
    expect(await caveatsFor('')).toEqual(['No release is known: set `release`.']);
  });
});
