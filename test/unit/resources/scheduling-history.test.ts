import { describe, expect, it } from 'vitest';
import { type CpuLimit, type CpuQuota, NOT_LIMITED, type Throttling } from '../../../src/resources/cgroup/cpu.js';
import type { ResourceReading } from '../../../src/resources/resource-reading.js';
import { SchedulingHistory } from '../../../src/resources/scheduling-history.js';

const quota = (directory: string, throttling: Throttling): CpuQuota => ({
  directory,
  isAncestor: directory !== '/own',
  cores: 0.5,
  throttling,
});

const counts = (nowMs: number): Throttling => ({
  periods: nowMs / 100,
  throttledPeriods: nowMs / 200,
  throttledSeconds: nowMs / 4_000,
});

const limit = (nowMs: number, parts: Partial<CpuLimit> = {}): CpuLimit => ({
  quotas: [quota('/own', counts(nowMs))],
  anySeconds: nowMs / 2_000,
  earlierSeconds: nowMs / 2_000,
  ...parts,
});

const at = (nowMs: number, cpuLimit = limit(nowMs), place = 'own'): ResourceReading => ({
  nowMs,
  place,
  layout: { version: 'v2', trust: 'exact', cpu: null, cpuacct: null, memory: null, unified: null },
  machine: { cpus: 2, memoryBytes: null },
  cpuUsage: { usageSeconds: nowMs / 1_000, userSeconds: null, systemSeconds: null },
  isCgroupUsage: true,
  cpuLimit,
  memory: null,
  machineAvailableBytes: null,
  cpuStallSeconds: null,
  memoryStallSeconds: null,
  runQueueMs: nowMs / 2,
  process: { cpuSeconds: 1, rssBytes: 1, heapUsedBytes: 1, heapLimitBytes: 1 },
});

describe('what was lost since a moment', () => {
  let next = at(0);
  const history = (...looks: ResourceReading[]): SchedulingHistory => {
    const made = new SchedulingHistory(() => next);
    for (const look of looks) made.keep(look);
    return made;
  };

  it('is counted from the last look before it', () => {
    next = at(3_400);
    const lost = history(at(1_000), at(2_000), at(3_000)).since(2_900);
    expect(lost).toEqual({ throttledPeriods: 7, throttledMs: 700 });
  });

  it('is unknown before the first look and after a move', () => {
    expect(history().since(500)).toBeNull();
    expect(history(at(1_000)).since(999)).toBeNull();
    next = at(2_000, limit(2_000), 'elsewhere');
    expect(history(at(1_000)).since(1_500)).toBeNull();
  });

  it('counts all limits that can be seen where the kernel does not tell of the others', () => {
    const both = (nowMs: number, throttledSeconds: number): ResourceReading => {
      const pod = { periods: nowMs / 100, throttledPeriods: nowMs / 100, throttledSeconds };
      const quotas = [quota('/own', counts(nowMs)), quota('/pod', pod)];
      return at(nowMs, limit(nowMs, { anySeconds: null, quotas }));
    };
    next = both(2_000, 0.5);
    // Periods are of the limit that was hit most.
    expect(history(both(1_000, 0.15)).since(1_000)).toEqual({ throttledPeriods: 10, throttledMs: 600 });
  });

  it('is unknown for a counter that went back, is not there, or is another level’s', () => {
    const without = history(at(1_000, limit(1_000, { anySeconds: null })));
    const reset = { periods: 0, throttledPeriods: 10, throttledSeconds: 0.5 };
    next = at(2_000, limit(2_000, { anySeconds: null, quotas: [quota('/own', reset)] }));
    expect(without.since(1_000)).toEqual({ throttledPeriods: 5, throttledMs: 250 });
    const quotas = [quota('/own', { ...reset, throttledPeriods: 0 })];
    next = at(2_000, limit(2_000, { anySeconds: null, quotas }));
    expect(without.since(1_000)).toMatchObject({ throttledPeriods: null });
    // A new holder's total is of its whole life.
    next = at(2_000, limit(2_000, { anySeconds: null, quotas: [quota('/', counts(2_000))] }));
    expect(without.since(1_000)).toEqual({ throttledPeriods: null, throttledMs: null });
    next = at(2_000, NOT_LIMITED);
    expect(without.since(1_000)).toEqual({ throttledPeriods: null, throttledMs: null });
  });

  it('remembers a few looks only, about a second apart', () => {
    const looks = history();
    for (let nowMs = 0; nowMs < 100_000; nowMs += 100) looks.keep(at(nowMs));
    expect(looks.since(90_000)).toBeNull();
    next = at(99_500);
    // Two milliseconds lost in four that pass.
    const lostMs = looks.since(97_500)!.throttledMs!;
    expect(lostMs).toBeGreaterThanOrEqual(1_000);
    expect(lostMs).toBeLessThanOrEqual(1_450);
  });
});
