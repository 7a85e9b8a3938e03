import { afterEach, describe, expect, it } from 'vitest';
import { CgroupAccounts } from '../../../src/resources/cgroup-accounts.js';
import { discoverCgroups } from '../../../src/resources/cgroup/discovery.js';
import { KernelFiles } from '../../../src/resources/kernel/kernel-file.js';
import {
  machine,
  MIB,
  V1_NO_LIMIT,
  v1Cpu,
  v1Cpuacct,
  v1Memory,
  v1Mount,
  v2Cgroup,
  v2Mount,
} from '../../fixtures/kernel/kernel-files.js';
import { type KernelTree, type KernelTreeFiles, kernelTree } from '../../fixtures/kernel/kernel-tree.js';

let undo: (() => void)[] = [];
afterEach(() => {
  for (const each of undo.toReversed()) each();
  undo = [];
});

/** As in service: descriptors are kept, so that limits are read now and then. Files are written in place, as the kernel does. */
function accountsOf(membership: string, given: KernelTreeFiles): { tree: KernelTree; accounts: CgroupAccounts } {
  const tree = kernelTree({ ...machine(), '/proc/self/cgroup': membership, ...given });
  const files = new KernelFiles(tree.root, true);
  undo.push(
    () => tree.dispose(),
    () => files.close(),
  );
  return { tree, accounts: new CgroupAccounts(discoverCgroups(tree.root), tree.root, files) };
}

const OWN = '/sys/fs/cgroup/own';
const v2 = (cpuMax: string, maxBytes: number, highBytes: number, currentBytes = 60 * MIB) => ({
  '/proc/self/mountinfo': v2Mount(),
  ...v2Cgroup(OWN, { cpuMax, maxBytes, highBytes, currentBytes, inactiveFileBytes: 20 * MIB }),
});

describe('limits that are changed in place', () => {
  it('are noticed within five seconds, usage at once', () => {
    const { tree, accounts } = accountsOf('0::/own\n', v2('50000 100000', 200 * MIB, 150 * MIB));
    const readings = [0, 4_999, 5_000].map((nowMs) => {
      const { cpuLimit, memory } = accounts.read(() => nowMs);
      tree.write(v2('75000 100000', 300 * MIB, 250 * MIB, 70 * MIB));
      return [cpuLimit?.limitCores, memory!.limitBytes! / MIB, memory!.highBytes! / MIB, memory!.headroomBytes! / MIB];
    });
    expect(readings).toEqual([
      [0.5, 200, 150, 160],
      [0.5, 200, 150, 150],
      [0.75, 300, 250, 250],
    ]);
  });

  it('are noticed at once where v1’s memory.stat tells', () => {
    const at = '/sys/fs/cgroup/memory';
    const { tree, accounts } = accountsOf('4:memory:/\n', {
      '/proc/self/mountinfo': v1Mount('memory', '/'),
      ...v1Memory(at, { limitBytes: V1_NO_LIMIT }),
    });
    const limitMib = (nowMs: number): number | null => {
      const { limitBytes } = accounts.read(() => nowMs).memory!;
      return limitBytes === null ? null : limitBytes / MIB;
    };
    expect(limitMib(0)).toBeNull();
    tree.write(v1Memory(at, { limitBytes: 256 * MIB }));
    expect(limitMib(1)).toBe(256);
    tree.write(v1Memory(at, { limitBytes: V1_NO_LIMIT }));
    expect(limitMib(2)).toBeNull();
  });
});

describe('what is read between two samples', () => {
  it('tells what is lost and what memory is left at the least, over all levels', () => {
    const parent = '/sys/fs/cgroup/pod';
    const own = `${parent}/own`;
    const ofParent = (currentBytes: number) => v2Cgroup(parent, { currentBytes, maxBytes: 256 * MIB });
    const { tree, accounts } = accountsOf('0::/pod/own\n', {
      '/proc/self/mountinfo': v2Mount(),
      ...ofParent(100 * MIB),
      ...v2Cgroup(own, {
        cpuMax: '50000 100000',
        periods: 7,
        throttled: 3,
        currentBytes: 60 * MIB,
        maxBytes: 200 * MIB,
      }),
    });
    expect(accounts.memoryLeftBytes()).toBeNull();
    accounts.read(() => 0);
    expect(accounts.scheduling(() => 1_000)).toMatchObject({
      nowMs: 1_000,
      cpuLimit: { limitCores: 0.5, periods: 7, throttledPeriods: 3 },
      runQueueMs: 25,
    });
    expect(accounts.memoryLeftBytes()).toBe(140 * MIB);
    tree.write(ofParent(250 * MIB));
    expect(accounts.memoryLeftBytes()).toBe(6 * MIB);
  });

  it('knows of v1’s limit of ancestors that cannot be seen', () => {
    const { accounts } = accountsOf('2:cpu:/\n3:cpuacct:/\n4:memory:/\n', {
      '/proc/self/mountinfo': v1Mount('cpu', '/') + v1Mount('cpuacct', '/') + v1Mount('memory', '/'),
      ...v1Cpu('/sys/fs/cgroup/cpu'),
      ...v1Cpuacct('/sys/fs/cgroup/cpuacct'),
      ...v1Memory('/sys/fs/cgroup/memory', { usageBytes: 60 * MIB, hierarchicalLimitBytes: 100 * MIB }),
    });
    accounts.read(() => 0);
    expect(accounts.memoryLeftBytes()).toBe(40 * MIB);
  });

  it('has nothing to say of memory without a limit', () => {
    const { accounts } = accountsOf('0::/own\n', {
      '/proc/self/mountinfo': v2Mount(),
      ...v2Cgroup(OWN, { currentBytes: 60 * MIB }),
    });
    accounts.read(() => 0);
    expect(accounts.memoryLeftBytes()).toBeNull();
  });
});
