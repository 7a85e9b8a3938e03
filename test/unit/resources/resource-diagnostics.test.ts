import { describe, expect, it } from 'vitest';
import type { ResourceSample } from '../../../src/core/record.js';
import { lowMemory, ResourceDiagnostics } from '../../../src/resources/resource-diagnostics.js';
import { recommendOldSpaceMb, youngSpaceBytes } from '../../../src/resources/resource-advice.js';
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

const limited = (memoryLimitBytes: number): ResourceSample => resourceSample({ memoryLimitBytes });

describe('what the container figures mean, in words', () => {
  it('names the flag when the heap may outgrow the container', () => {
    const { said, diagnostics: d } = diagnostics();
    d.start(resourceSample({ memoryLimitBytes: 128 * MIB, process: { heapLimitBytes: 259 * MIB } }), 48 * MIB);
    expect(said).toEqual([
      'The heap may grow to 259 MB, but the container has 128 MB: the kernel would kill the process before the garbage ' +
        'collector runs short. Start Node with --max-old-space-size=80, for example NODE_OPTIONS=--max-old-space-size=80.',
    ]);
  });

  it('names the young space too where that alone outgrows the container', () => {
    const { said, diagnostics: d } = diagnostics();
    // As Node 24 has it with `--max-old-space-size=128` alone, where it does not see the limit.
    d.start(resourceSample({ memoryLimitBytes: 256 * MIB, process: { heapLimitBytes: 320 * MIB } }), 192 * MIB);
    const flags = '--max-old-space-size=128 --max-semi-space-size=16';
    expect(said).toEqual([expect.stringContaining(`Start Node with ${flags}, for example NODE_OPTIONS='${flags}'.`)]);
  });

  it.each([
    ['20.19.0', 384, 432],
    ['22.23.3', 384, 432],
    ['24.21.0', 320, 512],
    ['26.10.0', 384, 480],
  ])('has nothing to say on Node %s when the flag was followed', (version, flagMb, heapLimitMb) => {
    const { said, diagnostics: d } = diagnostics();
    const sample = resourceSample({ memoryLimitBytes: 512 * MIB, process: { heapLimitBytes: heapLimitMb * MIB } });
    const youngBytes = youngSpaceBytes(version);
    expect(recommendOldSpaceMb(512 * MIB, youngBytes)).toBe(flagMb);
    d.start(sample, youngBytes);
    expect(said).toEqual([]);
    d.start(
      resourceSample({ memoryLimitBytes: 512 * MIB, process: { heapLimitBytes: (heapLimitMb + 100) * MIB } }),
      youngBytes,
    );
    expect(said).toHaveLength(1);
  });

  it.each([
    ['the default fits', GIB, 560 * MIB],
    ['all of it fits', GIB, GIB],
    ['the advice was followed in a container that is too small for the young space', 256 * MIB, 176 * MIB],
    ['there is no limit', null, 4 * GIB],
  ])('has nothing to say about the heap when %s', (_, memoryLimitBytes, heapLimitBytes) => {
    const { said, diagnostics: d } = diagnostics();
    d.start(resourceSample({ memoryLimitBytes, process: { heapLimitBytes } }), 48 * MIB);
    expect(said).toEqual([]);
  });

  it('speaks of throttling above 5 %, louder above 25 %, once each', () => {
    const { said, diagnostics: d } = diagnostics();
    for (const ratio of [0, 0.05, 0.06, 0.2, 0.38, 0.5, 0.07]) d.weighThrottling(throttled(ratio));
    expect(said).toEqual([
      expect.stringContaining('throttled in 6 % of periods: '),
      'The CPU was throttled in 38 % of periods: requests wait though the mean use is only 0.31 cores of a limit of 0.5. ' +
        'Raise the limit, or run less in parallel (workers, UV_THREADPOOL_SIZE).',
    ]);
  });

  it('draws no conclusion from a handful of periods', () => {
    const { said, diagnostics: d } = diagnostics();
    d.weighThrottling(throttled(1, 19));
    expect(said).toEqual([]);
    d.weighThrottling(resourceSample({}));
    expect(said).toEqual([]);
    d.weighThrottling(throttled(0, 19));
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
    d.start(sample, 48 * MIB);
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
