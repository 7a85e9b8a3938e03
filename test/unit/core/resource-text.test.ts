import { describe, expect, it } from 'vitest';
import { describeResources } from '../../../src/core/resource-text.js';
import { MIB } from '../../fixtures/kernel/kernel-files.js';
import { resourceSample } from '../../fixtures/resource-sample.js';

describe('a resource sample in one line', () => {
  it('tells use and limits', () => {
    const sample = resourceSample({
      cores: 2,
      memoryLimitBytes: 512 * MIB,
      window: { usageCores: 0.5, throttledRatio: 0.381 },
      memory: { workingSetBytes: 212 * MIB },
    });
    expect(describeResources(sample)).toBe('0.50 of 2 cores, 38 % of periods throttled, 212 of 512 MB');
  });

  it('leaves out what is unknown', () => {
    expect(describeResources(resourceSample({ window: { usageCores: 1.234 } }))).toBe('1.23 cores, 80 MB');
    expect(describeResources(resourceSample({}))).toBe('80 MB');
    const hidden = resourceSample({ cores: 0.25, window: { throttledByHiddenAncestor: true } });
    expect(describeResources(hidden)).toBe('0.10 of 0.25 cores, throttled by a limit outside the container, 80 MB');
  });
});
