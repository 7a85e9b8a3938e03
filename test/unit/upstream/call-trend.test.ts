import { describe, expect, it } from 'vitest';
import { CallTrend } from '../../../src/upstream/call-trend.js';
import { normal, randomOf } from '../../fixtures/random.js';

/** Windows of calls that take `ms` typically, twice as long or half as long often enough. */
function windows(trend: CallTrend, count: number, { ms, calls = 20 }: { ms: number; calls?: number }, seed = 1): void {
  const random = randomOf(seed);
  for (let window = 0; window < count; window++) {
    for (let call = 0; call < calls; call++) trend.add(ms * Math.exp(0.7 * normal(random)));
    trend.tick();
  }
}

/** Windows of calls that all take as long. */
function evenWindows(trend: CallTrend, count: number, ms: number): void {
  for (let window = 0; window < count; window++) {
    for (let call = 0; call < 10; call++) trend.add(ms);
    trend.tick();
  }
}

describe('calls to an upstream', () => {
  it('have become slower when a minute of them is above those before', () => {
    const trend = new CallTrend();
    windows(trend, 30, { ms: 180 });
    expect(trend.slowdown()).toBeNull();
    windows(trend, 6, { ms: 400 }, 2);
    const { beforeMs, nowMs } = trend.slowdown()!;
    expect(beforeMs / 180).toBeCloseTo(1, 0);
    expect(nowMs / 400).toBeCloseTo(1, 0);
  });

  it('have not when they are as they were, faster, or slower in a part of the minute only', () => {
    const trend = new CallTrend();
    windows(trend, 60, { ms: 180 });
    expect(trend.slowdown()).toBeNull();
    windows(trend, 3, { ms: 400 }, 2);
    expect(trend.slowdown()).toBeNull();
    const faster = new CallTrend();
    windows(faster, 30, { ms: 180 });
    windows(faster, 6, { ms: 50 }, 2);
    expect(faster.slowdown()).toBeNull();
  });

  it('are not judged by a few of them, or by less than three minutes before', () => {
    const seldom = new CallTrend();
    windows(seldom, 30, { ms: 180, calls: 9 });
    windows(seldom, 6, { ms: 2_000, calls: 9 }, 2);
    expect(seldom.slowdown()).toBeNull();
    const young = new CallTrend();
    windows(young, 17, { ms: 180 });
    windows(young, 6, { ms: 2_000 }, 2);
    expect(young.slowdown()).toBeNull();
  });

  it('are compared with the half hour before, and no longer', () => {
    const trend = new CallTrend();
    evenWindows(trend, 400, 50);
    evenWindows(trend, 180, 180);
    evenWindows(trend, 6, 400);
    expect(trend.slowdown()!.beforeMs).toBeCloseTo(180);
  });

  it('have the median of their windows as what is typical: of an even number the middle of two', () => {
    const beforeMs = (slow: number): number => {
      const trend = new CallTrend();
      evenWindows(trend, 9, 100);
      evenWindows(trend, slow, 400);
      evenWindows(trend, 6, 1_000);
      return trend.slowdown()!.beforeMs;
    };
    expect(beforeMs(9)).toBeCloseTo(200);
    expect(beforeMs(10)).toBeCloseTo(400);
  });

  it('are no finding where what is sure is too little to matter', () => {
    const few = new CallTrend();
    windows(few, 30, { ms: 1, calls: 200 });
    windows(few, 6, { ms: 3, calls: 200 }, 2);
    expect(few.slowdown()).toBeNull();
    const tenth = new CallTrend();
    windows(tenth, 30, { ms: 180, calls: 2_000 });
    windows(tenth, 6, { ms: 198, calls: 2_000 }, 2);
    expect(tenth.slowdown()).toBeNull();
  });

  it('that only vary are called slower less than once in a thousand looks', () => {
    const random = randomOf(3);
    let [looks, slower] = [0, 0];
    for (let run = 0; run < 20; run++) {
      const trend = new CallTrend();
      for (let window = 0; window < 500; window++) {
        for (let call = 0; call < 10; call++) trend.add(100 * Math.exp(1.2 * normal(random)));
        trend.tick();
        looks += 1;
        if (trend.slowdown() !== null) slower += 1;
      }
    }
    expect(looks).toBe(10_000);
    expect(slower).toBeLessThanOrEqual(10);
  });
});
