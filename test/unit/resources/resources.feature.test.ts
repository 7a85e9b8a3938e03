import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { PerfRecord } from '../../../src/core/record.js';
import type { KernelFiles } from '../../../src/ports/kernel-files.js';
import { ResourceReader } from '../../../src/resources/resource-reading.js';
import { ResourcesFeature } from '../../../src/resources/resources.feature.js';
import { resourcesRows, type ResourcesOptions } from '../../../src/resources/resources.options.js';

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
  const started: ResourcesFeature[] = [];
  const resources = (options: ResourcesOptions | null, files: KernelFiles | null = null): ResourcesFeature => {
    const resolved = options === null ? null : resourcesRows.read(options, 'resources');
    const recorder = { wanted: true, push: (record: PerfRecord) => void records.push(record) };
    const made = new ResourcesFeature(resolved, { recorder, logger: silent, nowMs: () => nowMs }, files);
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
    for (const each of started.splice(0)) each.drain();
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
    made.service.sample();
    pass(1_000);
    expect(records).toMatchObject([{ sample: { cpu: { window: { ms: 10_000 } } } }]);
    expect(made.service.sample().cpu.window?.ms).toBe(1_000);
  });

  it('shows what is true now, over a window that many who look do not shorten', () => {
    const made = resources({ intervalMs: 10_000 });
    expect(made.snapshot().resources).toBeNull();
    made.start();
    expect(made.snapshot().resources?.cpu.window).toBeNull();
    const windows: (number | undefined)[] = [];
    for (let second = 1; second <= 27; second++) {
      pass(1_000);
      windows.push(made.snapshot().resources?.cpu.window?.ms);
    }
    const seconds = windows.map((ms) => ms! / 1_000);
    expect(seconds.slice(0, 9)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(seconds.slice(9)).toEqual([10, 11, 12, 13, 14, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 5, 6, 7]);
    expect(records).toMatchObject([
      { sample: { cpu: { window: { ms: 10_000 } } } },
      { sample: { cpu: { window: { ms: 10_000 } } } },
    ]);
  });

  it('says at once whether memory is low, for health', () => {
    const made = resources({ memoryLimitBytes: 2 ** 20 });
    made.start();
    expect(made.reasons({ resources: null })).toEqual([{ about: 'resources', text: 'memory: 0 of 1 MB left' }]);
    expect(resources({}).reasons({ resources: null })).toEqual([]);
    expect(resources(null).reasons({ resources: null })).toEqual([]);
  });

  it('reads no file here after the start, while the thread of the sampler reads them', () => {
    const read = vi.spyOn(ResourceReader.prototype, 'read');
    const made = resources({}, { running: true, readFiles: () => new Promise(() => {}) });
    made.start();
    pass(3_000);
    made.snapshot();
    made.reasons({ resources: null });
    expect(made.allowance.cores().machine).toBeGreaterThan(0);
    made.allowance.throttledMs();
    expect(read).toHaveBeenCalledTimes(1);
    read.mockRestore();
  });

  it('stops with the application', () => {
    const made = resources({ intervalMs: 1_000 });
    made.start();
    made.drain();
    pass(5_000);
    expect(records).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('reads a few times between two records, so that low memory is seen', () => {
    for (const [intervalMs, everyMs] of [
      [50, 50],
      [1_000, 1_000],
      [2_500, 2_500 / 3],
      [2_592_000_000, 1_000],
    ] as const)
      expect(intervalsOf(() => resources({ intervalMs }).start())).toEqual([everyMs]);
  });

  it('does not exist when the feature is off, and sampling still works', () => {
    const made = resources(null);
    made.start();
    expect(vi.getTimerCount()).toBe(0);
    expect(made.snapshot().resources).toBeNull();
    expect(made.service.sample().process.rssBytes).toBeGreaterThan(0);
  });
});

describe.runIf(process.platform === 'linux')('descriptors', () => {
  const open = (): number => readdirSync('/proc/self/fd').length;

  it('are not kept between samples', () => {
    const before = open();
    const made = new ResourcesFeature(null, {
      recorder: { wanted: false, push: () => {} },
      logger: silent,
      nowMs: () => performance.now(),
    });
    made.start();
    for (let i = 0; i < 20; i++) made.service.sample();
    expect(open()).toBe(before);
  });
});
