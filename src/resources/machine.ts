import { availableParallelism, freemem, totalmem } from 'node:os';
import { exactCount, type KernelTree } from './cgroup/kernel-file.js';

/** CPUs and memory of the machine, the limits when no cgroup has lower ones. Unknown is null. */
export interface Machine {
  /** CPUs that the process may run on. */
  cpus: number | null;
  memoryBytes: number | null;
}

const isElsewhere = ({ root }: KernelTree): boolean => process.platform !== 'linux' && root === '';

/** The affinity covers cpusets of both versions of cgroups; `os.availableParallelism()` mixes the quota in, rounded. */
export function readMachine(tree: KernelTree): Machine {
  if (isElsewhere(tree)) return { cpus: availableParallelism(), memoryBytes: totalmem() };
  const status = /^Cpus_allowed_list:\s*(\S+)$/m.exec(tree.read('/proc/self/status'));
  return {
    cpus: countCpus(status?.[1] ?? ''),
    memoryBytes: parseMeminfo(tree.read('/proc/meminfo'), 'MemTotal') || null,
  };
}

/** Bytes that the machine can still give away without swapping. */
export const availableOn = (tree: KernelTree): number | null =>
  isElsewhere(tree) ? freemem() : parseMeminfo(tree.read('/proc/meminfo'), 'MemAvailable');

/** Bytes of one line of `/proc/meminfo`, which counts in kB; null when it is not there. */
export function parseMeminfo(text: string, key: 'MemTotal' | 'MemAvailable'): number | null {
  const kilobytes = new RegExp(`^${key}:\\s*(\\d+) kB$`, 'm').exec(text);
  return exactCount(kilobytes === null ? null : Number(kilobytes[1]) * 1024);
}

/** Counts a kernel CPU list such as `0-3,8,10-11`; null when it is none. */
export function countCpus(list: string): number | null {
  let count = 0;
  for (const range of list.split(',')) {
    const bounds = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(range);
    if (bounds === null) return null;
    const from = Number(bounds[1]);
    const to = Number(bounds[2] ?? bounds[1]);
    if (to < from) return null;
    count += to - from + 1;
  }
  return count;
}
