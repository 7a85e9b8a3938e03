import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PerfRecord } from '../../../src/core/record.js';
import { createResourceSampler } from '../../../src/resources/resource-sampler.js';
import { Resources } from '../../../src/resources/resources.js';
import { resolveResourcesOptions } from '../../../src/resources/resources.options.js';

const silent = { log: () => {}, warn: () => {}, error: () => {} };

/** The periods of the intervals that `work` starts. A spy of Vitest on a faked timer outlives the fake clock (4.1): by hand. */
function intervalsOf(work: () => void): (number | undefined)[] {
  const before = globalThis.setInterval;
  const periodsMs: (number | undefined)[] = [];
  globalThis.setInterval = (run: () => void, ms?: number) => {
    periodsMs.push(ms);
    return before(run, ms);
  };
  try {
    work();
  } finally {
    globalThis.setInterval = before;
  }
  return periodsMs;
}

describe('the publishing timer', () => {
  let nowMs = 0;
  let records: PerfRecord[];
  const started: Resources[] = [];
  const resources = (options: Parameters<typeof resolveResourcesOptions>[0] | null): Resources => {
    const resolved = options === null ? null : resolveResourcesOptions(options, 'resources');
    const made = new Resources(
      resolved,
      { wanted: true, push: (record) => void records.push(record) },
      silent,
      () => nowMs,
    );
    started.push(made);
    return made;
  };
  const pass = (ms: number): void => {
    // Timers fire at their own time; the clock they read is the same.
    for (let left = ms; left > 0; left -= 100) {
      nowMs += 100;
      vi.advanceTimersByTime(100);
    }
  };

  beforeEach(() => {
    nowMs = 0;
    records = [];
    vi.useFakeTimers();
  });
  afterEach(() => {
    for (const each of started.splice(0)) each.stop();
    vi.useRealTimers();
  });

  it('pushes a record each interval, whose window is the interval', () => {
    resources({ intervalMs: 2_000 }).start();
    pass(6_500);
    expect(records).toHaveLength(3);
    for (const record of records) {
      expect(record).toMatchObject({ kind: 'resource', sample: { cpu: { window: { ms: 2_000 } } } });
    }
  });

  it('has a baseline that no other sample moves', () => {
    const made = resources({ intervalMs: 10_000 });
    made.start();
    pass(9_000);
    made.sampler.sample();
    pass(1_000);
    expect(records).toMatchObject([{ sample: { cpu: { window: { ms: 10_000 } } } }]);
    expect(made.sampler.sample().cpu.window?.ms).toBe(1_000);
  });

  it('shows what is true now, over a window that many who look do not shorten', () => {
    const made = resources({ intervalMs: 10_000 });
    expect(made.snapshot()).toBeNull();
    made.start();
    expect(made.snapshot()?.cpu.window).toBeNull();
    const windows: (number | undefined)[] = [];
    for (let second = 1; second <= 27; second++) {
      pass(1_000);
      windows.push(made.snapshot()?.cpu.window?.ms);
    }
    const seconds = windows.map((ms) => ms! / 1_000);
    expect(seconds.slice(0, 9)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(seconds.slice(9)).toEqual([10, 11, 12, 13, 14, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 5, 6, 7]);
    expect(records).toMatchObject([
      { sample: { cpu: { window: { ms: 10_000 } } } },
      { sample: { cpu: { window: { ms: 10_000 } } } },
    ]);
  });

  it('stops with the application', () => {
    const made = resources({ intervalMs: 1_000 });
    made.start();
    made.stop();
    pass(5_000);
    expect(records).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('keeps the looks that tell the event loop what the kernel held back', () => {
    const made = resources({ intervalMs: 10_000 });
    expect(made.scheduling?.since(nowMs)).toBeNull();
    made.start();
    pass(5_900);
    expect(made.scheduling!.since(4_900)?.ms).toBe(5_900);
    const loss = made.scheduling!.since(5_500);
    expect(loss?.ms).toBe(900);
    if (process.platform === 'linux') expect(loss?.runQueueMs).toBeGreaterThanOrEqual(0);
    expect(made.scheduling!.since(-1)).toBeNull();
  });

  it.each([
    ['without a memory limit', {}, createResourceSampler().sample().limits.memoryBytes === null ? 5_000 : 1_000],
    ['with one', { memoryLimitBytes: 2 ** 30 }, 1_000],
  ])('watches as often as is urgent, %s', (_what, options, everyMs) => {
    expect(intervalsOf(() => resources({ intervalMs: 10_000, ...options }).start())).toEqual([10_000, everyMs]);
  });

  it.each([1_000, 3_000, 4_800, 5_000, 10_000, 60_000])(
    'looks every five seconds with records each %i ms',
    (intervalMs) => {
      const made = resources({ intervalMs });
      made.start();
      pass(60_000);
      for (let ago = 5_100; ago < 14_000; ago += 700) {
        // The look before a moment lies at most five seconds and a turn before it.
        expect(made.scheduling!.since(nowMs - ago)!.ms).toBeLessThanOrEqual(ago + 5_100);
      }
    },
  );

  it('has an interval that Node can wait for', () => {
    expect(intervalsOf(() => resources({ intervalMs: 2_592_000_000 }).start())[0]).toBe(2 ** 31 - 1);
  });

  it('does not exist when the feature is off, and sampling still works', () => {
    const made = resources(null);
    made.start();
    expect(vi.getTimerCount()).toBe(0);
    expect(made.snapshot()).toBeNull();
    expect(made.scheduling).toBeNull();
    expect(made.sampler.sample().process.rssBytes).toBeGreaterThan(0);
  });
});

describe.runIf(process.platform === 'linux')('descriptors', () => {
  const open = (): number => readdirSync('/proc/self/fd').length;

  it('are opened by the first read, kept, and given back', () => {
    const before = open();
    const made = new Resources(null, { wanted: false, push: () => {} }, silent, () => performance.now());
    made.start();
    expect(open()).toBe(before);
    made.sampler.sample();
    const kept = open();
    expect(kept).toBeGreaterThan(before);
    for (let i = 0; i < 20; i++) made.sampler.sample();
    expect(open()).toBe(kept);
    made.stop();
    expect(open()).toBe(before);
    made.sampler.sample();
    expect(open()).toBe(before);
  });
});
