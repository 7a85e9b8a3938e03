import { describe, expect, it } from 'vitest';
import { ResourceReader } from '../../../src/resources/resource-reading.js';
import { memoryLeft, sampleSince } from '../../../src/resources/resource-sample.js';
import { resourcesRows } from '../../../src/resources/resources.options.js';
import { MIB, machine, v1Memory, v1Mount, v2Cgroup, v2Mount } from '../../fixtures/kernel/kernel-files.js';
import { type KernelTreeFiles, kernelTree } from '../../fixtures/kernel/kernel-tree.js';

const V2 = { '/proc/self/mountinfo': v2Mount(), '/proc/self/cgroup': '0::/pod/own\n' };

/** In MB: what is left until the kernel kills, and what the working set leaves, as the kubelet counts. */
function left(files: KernelTreeFiles, memoryLimitBytes?: number) {
  const { root } = kernelTree({ ...machine(), ...files });
  const reading = new ResourceReader(root, () => 0).read();
  const options = resourcesRows.read({ memoryLimitBytes }, '');
  const { availableBytes } = sampleSince(null, reading, options).memory;
  return { left: memoryLeft(reading, options.memoryLimitBytes)! / MIB, available: availableBytes! / MIB };
}

describe('memory that is left until the kernel kills', () => {
  const cached = { currentBytes: 266 * MIB, activeFileBytes: 200 * MIB, inactiveFileBytes: 16 * MIB };

  it('counts page cache of any age, which the working set does not', () => {
    const own = { ...cached, maxBytes: 300 * MIB };
    expect(left({ ...V2, ...v2Cgroup('/sys/fs/cgroup/pod/own', own) })).toEqual({ left: 250, available: 50 });
  });

  it('counts slabs that the kernel takes back', () => {
    const own = { ...cached, reclaimableSlabBytes: 20 * MIB, maxBytes: 300 * MIB };
    expect(left({ ...V2, ...v2Cgroup('/sys/fs/cgroup/pod/own', own) })).toEqual({ left: 270, available: 50 });
  });

  it('counts no less on v1, descendants included', () => {
    const files = {
      '/proc/self/cgroup': '4:memory:/\n',
      '/proc/self/mountinfo': v1Mount('memory', '/'),
      ...v1Memory('/sys/fs/cgroup/memory', {
        usageBytes: 266 * MIB,
        limitBytes: 300 * MIB,
        activeFileBytes: 200 * MIB,
        inactiveFileBytes: 16 * MIB,
      }),
    };
    expect(left(files)).toEqual({ left: 250, available: 50 });
  });

  it('is what siblings leave of a parent’s limit', () => {
    const files = {
      ...V2,
      ...v2Cgroup('/sys/fs/cgroup/pod', { ...cached, currentBytes: 400 * MIB, maxBytes: 420 * MIB }),
      ...v2Cgroup('/sys/fs/cgroup/pod/own', { ...cached, maxBytes: 300 * MIB }),
    };
    expect(left(files)).toEqual({ left: 236, available: 36 });
  });

  it('goes by a limit that was named, and by the machine without one', () => {
    const files = { ...V2, ...v2Cgroup('/sys/fs/cgroup/pod/own', cached) };
    expect(left(files, 300 * MIB)).toEqual({ left: 250, available: 50 });
    expect(left(files)).toEqual({ left: 12_288, available: 12_288 });
  });

  it('is of the process where no cgroup tells', () => {
    const { left: process, available } = left({}, 2_048 * MIB);
    expect(process).toBe(available);
    expect(process).toBeLessThan(2_048);
  });
});
