import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { createResourceSampler, type ResourceSampler } from '../../../src/resources/resource-sampler.js';
import { MIB, machine, v2Cgroup, v2Mount } from '../../fixtures/kernel/kernel-files.js';
import { type KernelTree, kernelTree } from '../../fixtures/kernel/kernel-tree.js';

const OWN = '/sys/fs/cgroup';

describe('rates of a v2 container', () => {
  let tree: KernelTree;
  let sampler: ResourceSampler;
  let nowMs = 1_000;
  const now = (): number => nowMs;

  beforeEach(() => {
    nowMs = 1_000;
    tree = kernelTree({
      ...machine(),
      '/proc/self/cgroup': '0::/\n',
      '/proc/self/mountinfo': v2Mount(),
      ...v2Cgroup(OWN, {
        cpuMax: '50000 100000',
        usageUs: 10_000_000,
        periods: 100,
        throttled: 10,
        throttledUs: 2_000,
      }),
      '/proc/self/schedstat': '4000000000 1000000000 100\n',
    });
    sampler = createResourceSampler({ root: tree.root, now, cpuRequestCores: 0.25 });
  });

  it('has none at first', () => {
    const { cpu, pressure } = sampler.sample();
    expect(cpu.window).toBeNull();
    expect(pressure).toEqual({ cpuSomeRatio: null, memoryFullRatio: null });
  });

  it('divides what was used by the time, the limit and the request', () => {
    sampler.sample();
    nowMs += 2_000;
    tree.write({
      ...v2Cgroup(OWN, {
        cpuMax: '50000 100000',
        usageUs: 10_500_000,
        periods: 120,
        throttled: 15,
        throttledUs: 302_000,
        localThrottledUs: 302_000,
        cpuStallUs: 500_000,
        memoryStallUs: 20_000,
      }),
      '/proc/self/schedstat': '4400000000 1250000000 130\n',
    });
    const { cpu, pressure } = sampler.sample();
    expect(cpu.window).toEqual({
      ms: 2_000,
      usageCores: 0.25,
      utilization: 0.5,
      requestUtilization: 1,
      periods: 20,
      throttledPeriods: 5,
      throttledRatio: 0.25,
      throttledMs: 300,
      throttledByHiddenAncestor: null,
      runQueueMs: 250,
    });
    expect(pressure).toEqual({ cpuSomeRatio: 0.25, memoryFullRatio: 0.01 });
    expect(cpu).toMatchObject({
      usageSeconds: 10.5,
      userSeconds: 7.875,
      systemSeconds: 2.625,
      throttledSeconds: 0.302,
    });
  });

  it('says 0 where nothing was throttled, also when no period has passed', () => {
    sampler.sample();
    nowMs += 1_000;
    expect(sampler.sample().cpu.window).toMatchObject({ usageCores: 0, periods: 0, throttledRatio: 0, throttledMs: 0 });
  });

  it('has none right after a counter went back, and again at the next sample', () => {
    sampler.sample();
    nowMs += 1_000;
    tree.write(v2Cgroup(OWN, { cpuMax: '50000 100000', usageUs: 1_000_000 }));
    expect(sampler.sample().cpu.window).toBeNull();
    nowMs += 1_000;
    tree.write(v2Cgroup(OWN, { cpuMax: '50000 100000', usageUs: 1_200_000 }));
    expect(sampler.sample().cpu.window).toMatchObject({ ms: 1_000 });
    expect(sampler.latest?.cpu.window?.usageCores).toBeCloseTo(0.2, 9);
  });

  it.each([0, 0.5, -5_000])('has none when the clock moved by %s ms', (stepMs) => {
    sampler.sample();
    nowMs += stepMs;
    expect(sampler.sample().cpu.window).toBeNull();
  });

  it('sees a limit that was changed in place at the next sample', () => {
    sampler.sample();
    nowMs += 1_000;
    tree.write({ [`${OWN}/cpu.max`]: '200000 100000\n', [`${OWN}/cpu.stat`]: 'usage_usec 11000000\n' });
    const { limits, cpu } = sampler.sample();
    expect(limits.cpuCores).toBe(2);
    expect(cpu.window).toMatchObject({ usageCores: 1, utilization: 0.5, throttledRatio: null });
  });

  it('takes a limit without a period for one of 100 ms, as the kernel does', () => {
    tree.write({ [`${OWN}/cpu.max`]: '150000\n' });
    expect(sampler.sample().limits.cpuCores).toBe(1.5);
  });

  it('never tells of more throttled periods than periods', () => {
    sampler.sample();
    nowMs += 1_000;
    tree.write(
      v2Cgroup(OWN, {
        cpuMax: '50000 100000',
        usageUs: 10_100_000,
        periods: 110,
        throttled: 21,
        cpuStallUs: 2_000_000,
      }),
    );
    expect(sampler.sample().cpu.window).toMatchObject({ periods: 10, throttledPeriods: 11, throttledRatio: 1 });
    expect(sampler.latest?.pressure.cpuSomeRatio).toBe(1);
  });

  it('reads a file that was replaced rather than written', () => {
    sampler.sample();
    nowMs += 1_000;
    const path = join(tree.root, OWN, 'cpu.max');
    writeFileSync(`${path}.new`, 'max 100000\n');
    renameSync(`${path}.new`, path);
    expect(sampler.sample().limits.cpuCores).toBeNull();
  });

  it('shares the CPUs it may run on where there is no limit', () => {
    tree.write({ [`${OWN}/cpu.max`]: 'max 100000\n' });
    sampler.sample();
    nowMs += 1_000;
    tree.write({ [`${OWN}/cpu.stat`]: 'usage_usec 11000000\n' });
    expect(sampler.sample().cpu.window).toMatchObject({ usageCores: 1, utilization: 0.25, throttledRatio: null });
  });

  it('sees at the next sample that the cpuset was changed in place', () => {
    tree.write({ [`${OWN}/cpu.max`]: 'max 100000\n' });
    sampler.sample();
    nowMs += 1_000;
    tree.write({ ...machine({ cpus: '1' }), [`${OWN}/cpu.stat`]: 'usage_usec 10500000\n' });
    expect(sampler.sample().cpu.window).toMatchObject({ usageCores: 0.5, utilization: 0.5 });
    expect(sampler.recommend().workers).toBe(1);
  });

  it('may exceed 1: bursts are real', () => {
    sampler.sample();
    nowMs += 1_000;
    tree.write({ [`${OWN}/cpu.stat`]: 'usage_usec 10600000\n' });
    expect(sampler.sample().cpu.window?.utilization).toBeCloseTo(1.2, 9);
  });

  it('keeps the baseline of one sampler from another', () => {
    const other = createResourceSampler({ root: tree.root, now });
    sampler.sample();
    nowMs += 1_000;
    other.sample();
    nowMs += 1_000;
    expect(sampler.sample().cpu.window?.ms).toBe(2_000);
    expect(other.sample().cpu.window?.ms).toBe(1_000);
    nowMs += 1_000;
    sampler.recommend();
    expect(sampler.sample().cpu.window?.ms).toBe(1_000);
  });

  it('notices that the process was moved: new figures, no rate across the move', () => {
    tree.write({
      '/proc/self/cgroup': '0::/old\n',
      ...v2Cgroup(`${OWN}/old`, { usageUs: 10_000_000, currentBytes: 20 * MIB }),
      ...v2Cgroup(`${OWN}/new`, { usageUs: 20_000_000, currentBytes: 30 * MIB, maxBytes: 64 * MIB }),
    });
    sampler.sample();
    nowMs += 1_000;
    tree.write({ '/proc/self/cgroup': '0::/new\n' });
    const moved = sampler.sample();
    expect(moved.cpu).toMatchObject({ usageSeconds: 20, window: null });
    expect(moved.limits.memoryBytes).toBe(64 * MIB);
    expect(moved.pressure.cpuSomeRatio).toBeNull();
  });

  it('has no rate across a change from the cgroup to the process and back', () => {
    sampler.sample();
    nowMs += 1_000;
    tree.remove(`${OWN}/cpu.stat`);
    expect(sampler.sample().cpu.window).toBeNull();
    nowMs += 1_000;
    tree.write({ [`${OWN}/cpu.stat`]: 'usage_usec 90000000\n' });
    expect(sampler.sample().cpu.window).toBeNull();
  });

  it('goes on after close', () => {
    sampler.close();
    expect(sampler.sample().cpu.usageSeconds).toBe(10);
  });
});
