import { describe, expect, it } from 'vitest';
import { createResourceSampler } from '../../../src/resources/resource-sampler.js';
import type { ResourcesOptions } from '../../../src/resources/resources.options.js';
import { MIB, machine, v2Cgroup, v2Mount } from '../../fixtures/kernel/kernel-files.js';
import { type KernelTreeFiles, kernelTree } from '../../fixtures/kernel/kernel-tree.js';

const container = (files: KernelTreeFiles): KernelTreeFiles => ({
  ...machine(),
  '/proc/self/cgroup': '0::/\n',
  '/proc/self/mountinfo': v2Mount(),
  ...files,
});

describe('overrides of what a container allows', () => {
  it('stand for limits that cannot be seen (Fargate)', () => {
    const tree = kernelTree(container(v2Cgroup('/sys/fs/cgroup', { currentBytes: 100 * MIB })));
    const options: ResourcesOptions = { cpuLimitCores: 0.25, memoryLimitBytes: 512 * MIB };
    const { limits, memory } = createResourceSampler({ root: tree.root, ...options }).sample();
    expect(limits).toMatchObject({ source: 'override', trust: 'exact', cpuCores: 0.25, memoryBytes: 512 * MIB });
    expect(memory.availableBytes).toBe(412 * MIB);
  });

  it('replace what the cgroup says, but never its headroom when that is less', () => {
    const tree = kernelTree(
      container(
        v2Cgroup('/sys/fs/cgroup', {
          cpuMax: '100000 100000',
          currentBytes: 100 * MIB,
          maxBytes: 128 * MIB,
          periods: 7,
        }),
      ),
    );
    const sampler = createResourceSampler({ root: tree.root, cpuLimitCores: 3, memoryLimitBytes: 256 * MIB });
    const { limits, memory, cpu } = sampler.sample();
    expect(limits).toMatchObject({ source: 'override', cpuCores: 3, memoryBytes: 256 * MIB });
    expect(memory.availableBytes).toBe(28 * MIB);
    expect(cpu.periods).toBe(7);
  });

  it('work without any cgroup, with the process for the container', () => {
    const tree = kernelTree({});
    const { limits, memory } = createResourceSampler({ root: tree.root, memoryLimitBytes: 10_000 * MIB }).sample();
    expect(limits).toMatchObject({ version: 'none', source: 'override', trust: 'none', memoryBytes: 10_000 * MIB });
    expect(memory.availableBytes).toBe(10_000 * MIB - memory.workingSetBytes!);
  });

  it.each<[unknown, string]>([
    [{ cpuLimitCores: 0 }, 'PERF_ERR_OPTION: `cpuLimitCores` must be a number of CPU cores above 0, got `0` (number).'],
    [
      { memoryLimitBytes: '512Mi' },
      'PERF_ERR_OPTION: `memoryLimitBytes` must be a whole number of bytes above 0, got `"512Mi"` (string).',
    ],
    [
      { intervalMs: Number.NaN },
      'PERF_ERR_OPTION: `intervalMs` must be a number of milliseconds above 0, got `NaN` (number).',
    ],
    [{ cpuLimitCore: 2 }, 'PERF_ERR_OPTION: `cpuLimitCore` is not an option. Known options: '],
    [{ root: 5 }, 'PERF_ERR_OPTION: `root` must be a path, got `5` (number).'],
    [{ now: 5 }, 'PERF_ERR_OPTION: `now` must be a function that returns monotonic milliseconds, got `5` (number).'],
  ])('rejects %j', (options, message) => {
    expect(() => createResourceSampler(options as ResourcesOptions)).toThrow(message);
  });
});

it.each([
  [null, '`null`'],
  [5, '`5` (number)'],
  ['/host', '`"/host"` (string)'],
])('a sampler is not made of %j', (given, shown) => {
  expect(() => createResourceSampler(given as never)).toThrow(
    expect.objectContaining({
      code: 'PERF_ERR_OPTION',
      message: expect.stringContaining(`must be an object, got ${shown}`) as string,
    }),
  );
});
