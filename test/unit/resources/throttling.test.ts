import { describe, expect, it } from 'vitest';
import type { ResourceSample } from '../../../src/core/record.js';
import { createResourceSampler } from '../../../src/resources/resource-sampler.js';
import {
  MIB,
  machine,
  v1Cpu,
  v1Cpuacct,
  v1Memory,
  v1Mount,
  v2Cgroup,
  v2Mount,
} from '../../fixtures/kernel/kernel-files.js';
import { kernelTree } from '../../fixtures/kernel/kernel-tree.js';

const OWN = '/sys/fs/cgroup';

type Files = Readonly<Record<string, string | null>>;

/** Two samples of a process in `cgroup`, whose files become `after` in the `ms` between them. */
function samplesIn(cgroup: string, before: Files, after: Files, ms = 1_000): [ResourceSample, ResourceSample] {
  let nowMs = 0;
  const files = { '/proc/self/cgroup': `0::${cgroup}\n`, '/proc/self/mountinfo': v2Mount() };
  const tree = kernelTree({ ...machine(), ...files, ...before });
  const sampler = createResourceSampler({ root: tree.root, now: () => nowMs });
  const first = sampler.sample();
  nowMs += ms;
  tree.write(after);
  return [first, sampler.sample()];
}

const hiddenAncestorIn = (...of: Parameters<typeof samplesIn>): boolean | null | undefined =>
  samplesIn(...of)[1].cpu.window?.throttledByHiddenAncestor;

describe('throttling', () => {
  it.each([
    ['moves to', { cpuMax: 'max 100000' }],
    ['is lower at', { cpuMax: '50000 100000', periods: 110, throttled: 10, throttledUs: 2_000 }],
  ])('of two cgroups is not compared when the limit %s another level', (_, root) => {
    const own = (parts: Parameters<typeof v2Cgroup>[1]) => v2Cgroup(`${OWN}/own`, parts);
    const before = {
      ...v2Cgroup(OWN, { cpuMax: '50000 100000', periods: 100, throttled: 10, throttledUs: 2_000 }),
      ...own({ cpuMax: 'max 100000', usageUs: 1_000_000 }),
    };
    const after = {
      ...v2Cgroup(OWN, root),
      ...own({ cpuMax: '20000 100000', usageUs: 1_100_000, periods: 900, throttled: 900 }),
    };
    const [first, { limits, cpu }] = samplesIn('/own', before, after);
    expect(first.cpu).toMatchObject({ periods: 100, throttledPeriods: 10 });
    expect(limits.cpuCores).toBe(0.2);
    expect(cpu).toMatchObject({ periods: 900, throttledPeriods: 900 });
    const unknown = { periods: null, throttledPeriods: null, throttledRatio: null, throttledMs: null };
    expect(cpu.window).toMatchObject(unknown);
  });
});

describe('throttling of several limits', () => {
  interface Counts {
    periods: number;
    throttled: number;
    throttledUs: number;
  }
  const counts = (periods: number, throttled: number): Counts => ({
    periods,
    throttled,
    throttledUs: throttled * 50_000,
  });
  const files = (pod: Counts, own: Counts) => ({
    ...v2Cgroup(`${OWN}/pod`, { cpuMax: '60000 100000', ...pod }),
    ...v2Cgroup(`${OWN}/pod/own`, { cpuMax: '50000 100000', ...own }),
  });

  it.each([
    ['the pod’s, which a sidecar uses up', counts(70, 35), counts(80, 1), [70, 35, 0.5, 1_750]],
    ['the own one', counts(70, 1), counts(80, 20), [80, 20, 0.25, 1_000]],
    ['the lowest where none was hit', counts(70, 0), counts(80, 0), [80, 0, 0, 0]],
  ])(
    'is told of the one that was hit most: %s',
    (_, pod, own, [periods, throttledPeriods, throttledRatio, throttledMs]) => {
      const [, { limits, cpu }] = samplesIn('/pod/own', files(counts(0, 0), counts(0, 0)), files(pod, own), 7_000);
      expect(limits).toMatchObject({ cpuCores: 0.5, byAncestor: { cpu: false } });
      expect(cpu.window).toMatchObject({ periods, throttledPeriods, throttledRatio, throttledMs });
      // Counters are of one cgroup, the one with the lowest limit.
      expect(cpu).toMatchObject({ periods: own.periods, throttledPeriods: own.throttled });
    },
  );
});

describe('throttling by an ancestor that cannot be seen', () => {
  const files = (local: number, visible: number | null) =>
    v2Cgroup(OWN, {
      cpuMax: visible === null ? 'max 100000' : '100000 100000',
      localThrottledUs: local,
      ...(visible === null ? {} : { throttledUs: visible }),
    });

  it.each([
    ['the kernel throttled, no visible limit did', files(0, null), files(40_000, null), true],
    ['the kernel throttled by the visible limit', files(0, 0), files(40_000, 40_000), false],
    ['by the visible limit and by another one', files(0, 0), files(70_000, 40_000), true],
    ['nothing was throttled', files(10, null), files(10, null), false],
    ['the kernel has no cpu.stat.local', v2Cgroup(OWN, {}), v2Cgroup(OWN, {}), null],
  ])('%s', (_, before, after, expected) => {
    expect(hiddenAncestorIn('/', before, after)).toBe(expected);
  });
});

describe('throttling beside siblings', () => {
  const files = (local: number, own: number, pod: number) => ({
    ...v2Cgroup(`${OWN}/pod`, { cpuMax: '60000 100000', throttledUs: pod }),
    ...v2Cgroup(`${OWN}/pod/own`, { cpuMax: '50000 100000', throttledUs: own, localThrottledUs: local }),
  });

  it.each([
    ['all of it by limits that can be seen', files(90_000, 50_000, 40_000), false],
    ['more than by limits that can be seen', files(150_000, 50_000, 40_000), true],
    ['of a pod whose seconds are a sibling’s too', files(90_000, 50_000, 400_000), null],
    ['of two limits at the same time', files(60_000, 50_000, 40_000), null],
    ['of siblings only', files(0, 0, 400_000), false],
    ['of a limit that is gone', { ...files(90_000, 0, 0), [`${OWN}/pod/own/cpu.max`]: 'max 100000\n' }, null],
  ])('tells whether a limit that cannot be seen takes part: %s', (_, after, expected) => {
    expect(hiddenAncestorIn('/pod/own', files(0, 0, 0), after)).toBe(expected);
  });
});

describe('v1 units', () => {
  const at = '/sys/fs/cgroup/cpu,cpuacct';
  const base = {
    ...machine(),
    '/proc/self/cgroup': '3:cpu,cpuacct:/\n4:memory:/\n',
    '/proc/self/mountinfo': v1Mount('cpu,cpuacct', '/', at) + v1Mount('memory', '/'),
    ...v1Memory('/sys/fs/cgroup/memory', { oomKills: 2, inactiveFileBytes: 5 * MIB }),
  };

  it('counts nanoseconds, and reads descendants of the memory cgroup too', () => {
    let nowMs = 0;
    const tree = kernelTree({
      ...base,
      ...v1Cpu(at, { quotaUs: 100_000, throttledNs: 1_500_000_000, periods: 10, throttled: 5 }),
      ...v1Cpuacct(at, 4_000_000_000),
    });
    const sampler = createResourceSampler({ root: tree.root, now: () => nowMs });
    const first = sampler.sample();
    expect(first.cpu).toMatchObject({ usageSeconds: 4, userSeconds: 3, systemSeconds: 1, throttledSeconds: 1.5 });
    expect(first.memory).toMatchObject({
      usageBytes: 60 * MIB,
      workingSetBytes: 55 * MIB,
      peakBytes: 61 * MIB,
      anonBytes: 40 * MIB,
      fileBytes: 6 * MIB,
      kernelBytes: 2 * MIB,
      oomKills: 2,
    });
    nowMs = 1_000;
    tree.write({
      ...v1Cpu(at, { quotaUs: 100_000, throttledNs: 1_750_000_000, periods: 20, throttled: 9 }),
      ...v1Cpuacct(at, 4_900_000_000),
    });
    expect(sampler.sample().cpu.window).toMatchObject({ periods: 10, throttledRatio: 0.4, throttledMs: 250 });
    expect(sampler.latest?.cpu.window?.usageCores).toBeCloseTo(0.9, 9);
  });

  it('falls back to the 10 ms ticks of cpuacct.stat', () => {
    const tree = kernelTree({
      ...base,
      ...v1Cpu(at),
      [`${at}/cpuacct.stat`]: 'user 150\nsystem 50\n',
    });
    const { cpu } = createResourceSampler({ root: tree.root }).sample();
    expect(cpu).toMatchObject({ usageSeconds: 2, userSeconds: 1.5, systemSeconds: 0.5 });
  });
});
