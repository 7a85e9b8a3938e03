import { afterEach, describe, expect, it, vi } from 'vitest';
import { toEpochMs, monotonicMs } from '../../../src/core/clock.js';

afterEach(() => void vi.restoreAllMocks());

/** The wall clock stands at what `performance` tells, and so much further. */
const wallClockOff = (ms: number) =>
  vi.spyOn(Date, 'now').mockImplementation(() => performance.timeOrigin + performance.now() + ms);

describe('time stamps', () => {
  it.each([3_600_000, -3_600_000])('follow a wall clock that was set by %i ms, and back', (stepMs) => {
    for (const off of [0, stepMs, 0]) {
      wallClockOff(off);
      const nowMs = Date.now();
      expect(Math.abs(toEpochMs(monotonicMs()) - nowMs)).toBeLessThan(1_000);
      vi.restoreAllMocks();
    }
  });

  it('do not follow one that is read a little off: their order stays that of the monotonic clock', () => {
    wallClockOff(0);
    toEpochMs(0);
    wallClockOff(60);
    const earlier = toEpochMs(10.25);
    wallClockOff(-60);
    expect(toEpochMs(10.5) - earlier).toBeCloseTo(0.25, 3);
  });
});
