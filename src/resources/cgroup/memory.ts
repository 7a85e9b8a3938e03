import type { ResourceSample } from '../../core/record.js';
import type { ControllerCgroup } from './find.js';
import { exactCount, firstNumber, lineNumber, type KernelTree } from './kernel-file.js';

export type MemoryFigures = Omit<ResourceSample['memory'], 'availableBytes'>;

/** Memory of the own cgroup against the limits above it. Bytes; unknown or unlimited is null. */
export interface MemoryReading {
  /** Null when no cgroup has a usage. */
  figures: MemoryFigures | null;
  limitBytes: number | null;
  highBytes: number | null;
  byAncestor: boolean;
  /** The least that any limit, or `memory.high`, leaves of its working set; siblings use up a parent's limit too. */
  headroomBytes: number | null;
  /** The least that any limit leaves above unreclaimable memory: at 0 the kernel kills or throttles. */
  leftBytes: number | null;
  /** Unreclaimable memory of the own cgroup. */
  heldBytes: number;
}

type Version = ControllerCgroup['version'];

/** How each version of cgroups names its files. v1 has no `high`: its soft limit is something else. */
const FILES = {
  v1: {
    usage: 'memory.usage_in_bytes',
    limit: 'memory.limit_in_bytes',
    high: null,
    peak: 'memory.max_usage_in_bytes',
    oom: 'memory.oom_control',
  },
  v2: { usage: 'memory.current', limit: 'memory.max', high: 'memory.high', peak: 'memory.peak', oom: 'memory.events' },
} as const;

/** Lines of `memory.stat`. On v1 descendants count only with `total_`: the kubelet reads the same lines. */
const STAT = {
  v1: { inactiveFile: 'total_inactive_file', activeFile: 'total_active_file', anon: 'total_rss', file: 'total_cache' },
  v2: { inactiveFile: 'inactive_file', activeFile: 'active_file', anon: 'anon', file: 'file' },
} as const;

/** Kernel memory by its parts, before Linux 5.18 had a line for the sum. */
const KERNEL_PARTS = ['slab', 'kernel_stack', 'pagetables', 'percpu'] as const;

/**
 * Null when no level has a usage or a limit.
 * @param rssBytes The process's own memory: used at the least, where no cgroup has a higher figure.
 */
export function readMemory(
  tree: KernelTree,
  { version, directories }: ControllerCgroup,
  rssBytes: number,
): MemoryReading | null {
  const names = FILES[version];
  const readBytes = (directory: string, name: string): number | null =>
    exactCount(firstNumber(tree.read(`${directory}/${name}`)));
  const limitIn = (directory: string, name: string): number | null => toLimit(readBytes(directory, name));
  const readStat = (directory: string): string => tree.read(`${directory}/memory.stat`);
  let own: { directory: string; usageBytes: number } | undefined;
  const levels = directories.map((directory) => {
    const limitBytes = limitIn(directory, names.limit);
    const highBytes = names.high === null ? null : limitIn(directory, names.high);
    const boundBytes = least([limitBytes, highBytes]);
    const usageBytes = own === undefined || boundBytes !== null ? readBytes(directory, names.usage) : null;
    // The nearest ancestor accounts for an own cgroup whose controller is off (v2).
    if (usageBytes !== null) own ??= { directory, usageBytes };
    return { directory, usageBytes, limitBytes, highBytes, boundBytes };
  });
  const ownStat = own === undefined ? '' : readStat(own.directory);
  const ownUse =
    own === undefined
      ? { workingSetBytes: rssBytes, heldBytes: rssBytes }
      : measureUse(own.usageBytes, ownStat, version);
  const subtractUse = (boundBytes: number, { workingSetBytes, heldBytes } = NOTHING) => ({
    // A parent uses at least what its child does.
    headroomBytes: Math.max(0, boundBytes - Math.max(ownUse.workingSetBytes, workingSetBytes)),
    leftBytes: Math.max(0, boundBytes - Math.max(ownUse.heldBytes, heldBytes)),
  });

  const bounds = levels.flatMap(({ directory, limitBytes, boundBytes, usageBytes }) => {
    if (boundBytes === null) return [];
    const isOther = directory !== own?.directory && usageBytes !== null;
    const left = subtractUse(boundBytes, isOther ? measureUse(usageBytes, readStat(directory), version) : undefined);
    return [{ limitBytes, ...left, byAncestor: directory !== directories[0] }];
  });
  // v1 has the lowest limit up the tree even where the ancestors are hidden (the task limit of ECS).
  const lowestBytes = version === 'v1' ? toLimit(exactCount(lineNumber(ownStat, 'hierarchical_memory_limit'))) : null;
  if (lowestBytes !== null) bounds.push({ limitBytes: lowestBytes, ...subtractUse(lowestBytes), byAncestor: true });

  const highBytes = least(levels.map((level) => level.highBytes));
  if (own === undefined && bounds.length === 0) return null;
  const limitBytes = least(bounds.map((bound) => bound.limitBytes));
  return {
    figures:
      own === undefined
        ? null
        : {
            usageBytes: own.usageBytes,
            ...parseMemoryStat(ownStat, own.usageBytes, version),
            ...(version === 'v1' ? { kernelBytes: readBytes(own.directory, 'memory.kmem.usage_in_bytes') } : {}),
            peakBytes: readBytes(own.directory, names.peak),
            oomKills: exactCount(lineNumber(tree.read(`${own.directory}/${names.oom}`), 'oom_kill')),
          },
    limitBytes,
    highBytes,
    byAncestor: bounds.find((bound) => limitBytes !== null && bound.limitBytes === limitBytes)?.byAncestor ?? false,
    headroomBytes: least(bounds.map((bound) => bound.headroomBytes)),
    leftBytes: least(bounds.map((bound) => bound.leftBytes)),
    heldBytes: ownUse.heldBytes,
  };
}

/** The working set is usage without the file pages that the kernel reclaims first: the figure the kubelet goes by. */
export function parseMemoryStat(
  stat: string,
  usageBytes: number,
  version: Version,
): Omit<MemoryFigures, 'usageBytes' | 'peakBytes' | 'oomKills'> {
  const names = STAT[version];
  const line = (key: string): number | null => exactCount(lineNumber(stat, key));
  const inactiveFileBytes = line(names.inactiveFile);
  const parts = KERNEL_PARTS.map(line).filter((bytes) => bytes !== null);
  return {
    workingSetBytes: inactiveFileBytes === null ? null : Math.max(0, usageBytes - inactiveFileBytes),
    anonBytes: line(names.anon),
    fileBytes: line(names.file),
    kernelBytes: line('kernel') ?? (parts.length === 0 ? null : parts.reduce((sum, bytes) => sum + bytes, 0)),
  };
}

const NOTHING = { workingSetBytes: 0, heldBytes: 0 };

/** The working set, all of the usage where `memory.stat` is missing (gVisor); and what is left of it without all that the kernel takes back. */
function measureUse(usageBytes: number, stat: string, version: Version): typeof NOTHING {
  const workingSetBytes = parseMemoryStat(stat, usageBytes, version).workingSetBytes ?? usageBytes;
  const line = (key: string): number => exactCount(lineNumber(stat, key)) ?? 0;
  // tmpfs is in neither. v1 has no line for slabs.
  const heldBytes = Math.max(0, workingSetBytes - line(STAT[version].activeFile) - line('slab_reclaimable'));
  return { workingSetBytes, heldBytes };
}

/** v1 has no word for "no limit": it writes 2^63 rounded down to a page, which is no exact count. 0 would allow no process. */
const toLimit = (bytes: number | null): number | null => (bytes === 0 ? null : bytes);

function least(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.min(...known);
}
