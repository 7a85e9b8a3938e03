import { describe, expect, it } from 'vitest';
import type { ResourceSample } from '../../../src/core/record.js';
import { disagreement } from '../../../src/resources/node-figures.js';
import { type CpuQuota, UNKNOWN_THROTTLING } from '../../../src/resources/cgroup/cpu.js';
import { heapSpaces } from '../../../src/resources/heap-spaces.js';
import { lowMemory, ResourceDiagnostics } from '../../../src/resources/resource-diagnostics.js';
import { heapFlags } from '../../../src/resources/resource-advice.js';
import { GIB, MIB } from '../../fixtures/kernel/kernel-files.js';
import { resourceSample } from '../../fixtures/resource-sample.js';

function diagnostics() {
  const said: string[] = [];
  const say = (message: string): void => void said.push(message);
  return { said, diagnostics: new ResourceDiagnostics({ log: say, warn: say, error: say }) };
}

const throttled = (ratio: number, periods = 100): ResourceSample =>
  resourceSample({
    cores: 0.5,
    window: { periods, throttledPeriods: ratio * periods, throttledRatio: ratio, usageCores: 0.31 },
  });

const quota = (cores: number, isAncestor = false): CpuQuota => ({
  directory: '/',
  isAncestor,
  cores,
  throttling: UNKNOWN_THROTTLING,
});

const limited = (memoryLimitBytes: number): ResourceSample => resourceSample({ memoryLimitBytes });

/** Young spaces differ by major. */
const node20 = heapSpaces(259 * MIB, '', '20.19.0');

describe('what the container figures mean, in words', () => {
  it('names the flag when the heap may outgrow the container', () => {
    const { said, diagnostics: d } = diagnostics();
    d.start(resourceSample({ memoryLimitBytes: 128 * MIB, process: { heapLimitBytes: 259 * MIB } }), node20);
    expect(said).toEqual([
      'The heap may grow to 259 MB, but the container has 128 MB: the kernel would kill the process before the garbage ' +
        'collector runs short. Start Node with --max-old-space-size=80, for example NODE_OPTIONS=--max-old-space-size=80.',
    ]);
  });

  it('names a share of the container where this Node takes one, and nothing once it was followed', () => {
    const { said, diagnostics: d } = diagnostics();
    const sample = resourceSample({ memoryLimitBytes: 512 * MIB, process: { heapLimitBytes: 2_096 * MIB } });
    d.start(sample, heapSpaces(2_096 * MIB, '', '22.23.3'), 512 * MIB);
    expect(said[0]).toContain('Start Node with --max-old-space-size-percentage=75, for example NODE_OPTIONS=');
    const followed = diagnostics();
    const flags = '--max-old-space-size-percentage=75';
    followed.diagnostics.start(sample, heapSpaces(432 * MIB, flags, '22.23.3', 512 * MIB), 512 * MIB);
    expect(followed.said).toEqual([]);
    for (let i = 0; i < 2; i++) followed.diagnostics.watch(sample, MIB);
    followed.diagnostics.watch(resourceSample({ memoryLimitBytes: 512 * MIB, memory: { oomKills: 7 } }), MIB);
    expect(followed.said).toEqual([
      expect.stringContaining('or lower --max-old-space-size-percentage so that'),
      expect.stringContaining('a smaller --max-old-space-size-percentage.'),
    ]);
  });

  it('names two flags where the young space alone takes more than half', () => {
    const { said, diagnostics: d } = diagnostics();
    const heap = heapSpaces(4_288 * MIB, '', '24.21.0');
    d.start(resourceSample({ memoryLimitBytes: 256 * MIB, process: { heapLimitBytes: 4_288 * MIB } }), heap);
    expect(said[0]).toContain('NODE_OPTIONS="--max-old-space-size=128 --max-semi-space-size=16".');
  });

  it.each([
    ['20.19.0', 384, 432],
    ['22.23.3', 384, 432],
    ['24.21.0', 320, 512],
    ['26.10.0', 384, 480],
  ])('has nothing to say on Node %s when the flag was followed', (version, flagMb, heapLimitMb) => {
    const { said, diagnostics: d } = diagnostics();
    const sample = resourceSample({ memoryLimitBytes: 512 * MIB, process: { heapLimitBytes: heapLimitMb * MIB } });
    expect(heapFlags(512 * MIB, heapSpaces(4_288 * MIB, '', version).youngBytes).oldSpaceMb).toBe(flagMb);
    d.start(sample, heapSpaces(heapLimitMb * MIB, `--max-old-space-size=${flagMb}`, version));
    expect(said).toEqual([]);
    d.start(sample, heapSpaces((heapLimitMb + 100) * MIB, `--max-old-space-size=${flagMb + 100}`, version));
    expect(said).toHaveLength(1);
  });

  it.each([
    ['the default fits', GIB, 560 * MIB],
    ['there is no limit', null, 4 * GIB],
  ])('has nothing to say about the heap when %s', (_, memoryLimitBytes, heapLimitBytes) => {
    const { said, diagnostics: d } = diagnostics();
    d.start(
      resourceSample({ memoryLimitBytes, process: { heapLimitBytes } }),
      heapSpaces(heapLimitBytes, '', '20.19.0'),
    );
    expect(said).toEqual([]);
  });

  it('speaks of throttling above 5 %, louder above 25 %, once each', () => {
    const { said, diagnostics: d } = diagnostics();
    for (const ratio of [0, 0.05, 0.06, 0.2, 0.38, 0.5, 0.07]) d.weighThrottling(throttled(ratio), quota(0.5));
    expect(said).toEqual([
      expect.stringContaining('throttled in 6 % of periods by the limit of 0.5 cores: '),
      'The CPU was throttled in 38 % of periods by the limit of 0.5 cores: requests wait though the mean use is only 0.31 cores. ' +
        'Raise that limit, or run less in parallel (workers, UV_THREADPOOL_SIZE).',
    ]);
  });

  it('names the limit that throttled, which need not be the lowest nor the own one', () => {
    const { said, diagnostics: d } = diagnostics();
    d.weighThrottling(throttled(1, 10), quota(0.6, true));
    d.weighThrottling(throttled(0, 10), null);
    expect(said).toEqual([expect.stringContaining('in 50 % of periods by the limit of 0.6 cores of a parent cgroup:')]);
  });

  it('draws no conclusion from a handful of periods', () => {
    const { said, diagnostics: d } = diagnostics();
    d.weighThrottling(throttled(1, 19), quota(0.5));
    expect(said).toEqual([]);
    d.weighThrottling(resourceSample({}), null);
    expect(said).toEqual([]);
    d.weighThrottling(throttled(0, 19), null);
    expect(said).toEqual([expect.stringContaining('throttled in 50 % of periods')]);
  });

  it('names a limit that cannot be seen', () => {
    const { said, diagnostics: d } = diagnostics();
    const sample = resourceSample({ window: { throttledByHiddenAncestor: true } });
    d.watch(sample);
    d.watch(sample);
    expect(said).toEqual([expect.stringContaining('Name it in `resources.cpuLimitCores`')]);
  });

  it('asks for no name of a hidden limit where another one can be seen', () => {
    const { said, diagnostics: d } = diagnostics();
    d.watch(resourceSample({ cores: 0.4, window: { throttledByHiddenAncestor: true } }));
    expect(said).toEqual([expect.stringContaining('It is shared with other containers: raise it, or give them less.')]);
  });

  it('warns of low memory when it stays low', () => {
    const { said, diagnostics: d } = diagnostics();
    for (const left of [19, 60, 19]) d.watch(limited(128 * MIB), left * MIB);
    expect(said).toEqual([]);
    d.watch(limited(128 * MIB), 18 * MIB);
    d.watch(limited(128 * MIB), 2 * MIB);
    expect(said).toEqual([
      'Only 18 of 128 MB memory are left; at 0 the kernel kills the process (exit code 137). ' +
        'Raise the memory limit, or lower --max-old-space-size so that the garbage collector works earlier.',
    ]);
  });

  it('goes by memory.high where that is lower: the kernel throttles there', () => {
    const { said, diagnostics: d } = diagnostics();
    const sample = resourceSample({
      memoryLimitBytes: 4 * GIB,
      memoryHighBytes: 512 * MIB,
      process: { heapLimitBytes: 1_048 * MIB },
    });
    d.start(sample, heapSpaces(1_048 * MIB, '', '20.19.0'));
    for (let i = 0; i < 2; i++) d.watch(sample, MIB);
    expect(said).toEqual([
      'The heap may grow to 1048 MB, but the container has 512 MB (memory.high): the kernel would throttle the process before ' +
        'the garbage collector runs short. Start Node with --max-old-space-size=384, for example NODE_OPTIONS=--max-old-space-size=384.',
      'Only 1 of 512 MB memory are left; at 0 the kernel throttles the process. ' +
        'Raise memory.high, or lower --max-old-space-size so that the garbage collector works earlier.',
    ]);
  });

  it('calls less than 15 % of the limit low', () => {
    const { limits } = limited(128 * MIB);
    expect([19 * MIB, 20 * MIB, null].map((left) => lowMemory(limits, left))).toEqual(['19 of 128 MB', null, null]);
  });

  it('calls 256 MB left of a large container enough', () => {
    const { said, diagnostics: d } = diagnostics();
    for (let i = 0; i < 3; i++) d.watch(limited(16 * GIB), 257 * MIB);
    expect(said).toEqual([]);
  });

  it('tells of an OOM kill since the start, too', () => {
    const { said, diagnostics: d } = diagnostics();
    d.start(resourceSample({ memory: { oomKills: 0 } }));
    d.watch(resourceSample({ memory: { oomKills: 3 } }));
    expect(said.join()).toContain('The kernel killed 3 processes');
  });

  it('asks for no name of a limit that has one', () => {
    const said: string[] = [];
    const say = (message: string): void => void said.push(message);
    const d = new ResourceDiagnostics({ log: say, warn: say, error: say }, true);
    d.watch(resourceSample({ window: { throttledByHiddenAncestor: true } }));
    expect(said).toEqual([]);
  });

  it('tells of an OOM kill that it saw, not of one before its time', () => {
    const { said, diagnostics: d } = diagnostics();
    for (const oomKills of [3, 3, null, 3]) d.watch(resourceSample({ memory: { oomKills } }));
    expect(said).toEqual([]);
    for (const oomKills of [4, 6]) d.watch(resourceSample({ memory: { oomKills } }));
    expect(said).toEqual([expect.stringContaining('The kernel killed a process of this container')]);
  });
});

describe("Node's own figures", () => {
  const { limits } = resourceSample({ cores: 0.5, memoryLimitBytes: 128 * MIB });

  it('are compared with the limits', () => {
    expect(disagreement(limits, { availableParallelism: 2, constrainedMemory: 2 ** 64 })).toBe(
      "Node's own figures are wrong here: os.availableParallelism() says 2 at a CPU limit of 0.5 cores, " +
        'process.constrainedMemory() says 18446744073709552000 at a limit of 128 MB. ' +
        'Size workers, pools and heaps by ResourceSampler.recommend().',
    );
  });

  it.each([
    ['they agree', limits, { availableParallelism: 1, constrainedMemory: 128 * MIB }],
    [
      'libuv takes memory.high',
      resourceSample({ memoryLimitBytes: GIB, memoryHighBytes: 512 * MIB }).limits,
      { availableParallelism: 1, constrainedMemory: 512 * MIB },
    ],
    ['there are no limits', resourceSample({}).limits, { availableParallelism: 64, constrainedMemory: 2 ** 64 }],
    [
      'a part of a core is rounded up',
      resourceSample({ cores: 1.5 }).limits,
      { availableParallelism: 2, constrainedMemory: 0 },
    ],
  ])('need no word when %s', (_, limits, node) => {
    expect(disagreement(limits, node)).toBeNull();
  });
});
