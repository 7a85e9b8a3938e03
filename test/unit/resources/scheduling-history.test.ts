import { describe, expect, it } from 'vitest';
import { SchedulingHistory, type SchedulingReading } from '../../../src/resources/scheduling-history.js';

const limit = (nowMs: number): NonNullable<SchedulingReading['cpuLimit']> => ({
  limitCores: 0.5,
  byAncestor: false,
  heldBy: '/own',
  periods: nowMs / 100,
  throttledPeriods: nowMs / 200,
  throttledSeconds: nowMs / 4_000,
  visibleSeconds: nowMs / 4_000,
  anySeconds: nowMs / 2_000,
});

const at = (nowMs: number, parts: Partial<SchedulingReading> = {}): SchedulingReading => ({
  nowMs,
  place: 'own',
  cpuLimit: limit(nowMs),
  runQueueMs: nowMs / 2,
  ...parts,
});

describe('what was lost since a moment', () => {
  let next = at(0);
  const history = (): SchedulingHistory => new SchedulingHistory(() => next);
  const look = (to: SchedulingHistory, reading: SchedulingReading): void => {
    to.keep(reading);
  };

  it('is counted from the last look before it', () => {
    const looks = history();
    for (const nowMs of [1_000, 2_000, 3_000]) look(looks, at(nowMs));
    next = at(3_400);
    expect(looks.since(2_900)).toEqual({
      ms: 1_400,
      periods: 14,
      throttledPeriods: 7,
      throttledMs: 700,
      runQueueMs: 700,
    });
  });

  it('is unknown before the first look and after a move', () => {
    const looks = history();
    expect(looks.since(500)).toBeNull();
    look(looks, at(1_000));
    expect(looks.since(999)).toBeNull();
    next = at(2_000, { place: 'elsewhere' });
    expect(looks.since(1_500)).toBeNull();
    next = at(2_300, { place: 'elsewhere' });
    expect(looks.since(2_100)?.ms).toBe(300);
  });

  it('is unknown for a counter that went back, is not there, or is another level’s', () => {
    const looks = history();
    look(looks, at(1_000, { cpuLimit: { ...limit(1_000), anySeconds: null } }));
    next = at(2_000, { cpuLimit: { ...limit(2_000), periods: 0, anySeconds: null } });
    expect(looks.since(1_000)).toMatchObject({ periods: null, throttledPeriods: 5, throttledMs: 250, runQueueMs: 500 });
    next = at(2_000, { cpuLimit: { ...limit(2_000), heldBy: '/' } });
    expect(looks.since(1_000)).toMatchObject({ periods: null, throttledPeriods: null });
    // A new holder's total is of its whole life.
    next = at(2_000, { cpuLimit: { ...limit(2_000), heldBy: '/', visibleSeconds: 120, anySeconds: null } });
    expect(looks.since(1_000)).toMatchObject({ throttledMs: null });
    next = at(2_000, { cpuLimit: null });
    expect(looks.since(1_000)).toMatchObject({ periods: null, throttledMs: null, runQueueMs: 500 });
  });

  it('remembers a few looks only', () => {
    const looks = history();
    for (let nowMs = 0; nowMs < 100_000; nowMs += 1_000) look(looks, at(nowMs));
    expect(looks.since(90_000)).toBeNull();
    next = at(99_500);
    expect(looks.since(97_500)?.ms).toBe(2_500);
  });
});
