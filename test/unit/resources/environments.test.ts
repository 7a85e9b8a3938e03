import { describe, expect, it } from 'vitest';
import { createResourceSampler } from '../../../src/resources/resource-sampler.js';
import { ENVIRONMENTS } from '../../fixtures/kernel/environments.js';
import { kernelTree } from '../../fixtures/kernel/kernel-tree.js';

describe('ResourceSampler in every kind of environment', () => {
  it.each(ENVIRONMENTS.map((environment) => [environment.name, environment] as const))('%s', (_, environment) => {
    const { root } = kernelTree(environment.files);
    const { limits, cpu, memory } = createResourceSampler({ root }).sample();
    const { expected } = environment;
    expect(limits).toEqual({
      version: expected.version,
      source: expected.source ?? 'cgroup',
      trust: expected.trust,
      cpuCores: expected.cpuCores,
      memoryBytes: expected.memoryBytes,
      memoryHighBytes: expected.memoryHighBytes ?? null,
      byAncestor: expected.byAncestor ?? { cpu: false, memory: false },
    });
    if (expected.usageSeconds === 'process') {
      expect(cpu.usageSeconds).toBeGreaterThan(0);
      expect(cpu.usageSeconds).toBeCloseTo(process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6, 0);
    } else {
      expect(cpu.usageSeconds).toBe(expected.usageSeconds);
    }
    if (expected.workingSetBytes === 'process') expect(memory.workingSetBytes).toBeGreaterThan(10 * 2 ** 20);
    else expect(memory.workingSetBytes).toBe(expected.workingSetBytes);
    if (expected.availableBytes !== undefined) expect(memory.availableBytes).toBe(expected.availableBytes);
    if (expected.periods !== undefined) expect(cpu.periods).toBe(expected.periods);
  });
});
