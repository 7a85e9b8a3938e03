import type { ControllerCgroup } from './discovery.js';
import type { KernelFile, KernelFiles } from '../kernel/kernel-file.js';
import { exactCount, lineNumber } from '../kernel/kernel-text.js';
import { MEMORY_FILES, type MemoryFiles } from './memory-files.js';

/** Memory of the own cgroup against the limits above it. Bytes; unknown or unlimited is null. */
export interface MemoryReading {
  usageBytes: number | null;
  /** Usage without the file pages that the kernel reclaims first: the figure the kubelet goes by. */
  workingSetBytes: number | null;
  anonBytes: number | null;
  fileBytes: number | null;
  kernelBytes: number | null;
  peakBytes: number | null;
  oomKills: number | null;
  limitBytes: number | null;
  highBytes: number | null;
  byAncestor: boolean;
  /** The least that any limit still allows; siblings use up a parent's limit too. Limits above the machine's memory allow nothing. */
  headroomBytes: number | null;
}

export class MemoryUsage {
  private readonly levels: readonly MemoryLevel[];

  constructor(files: KernelFiles, { version, directories }: ControllerCgroup) {
    this.levels = directories.map((directory) => new MemoryLevel(files, directory, MEMORY_FILES[version]));
  }

  /** Null when no level tells its usage. Limits are read each time: they are changed in place. */
  read(machineBytes: number | null): MemoryReading | null {
    // Where the controller is off for the own cgroup (v2), the nearest ancestor accounts for it.
    for (const own of this.levels) {
      const usageBytes = own.usage();
      if (usageBytes === null) continue;
      const { hierarchicalLimit, ...detail } = own.detail(usageBytes);
      // v1 tells the lowest limit of all levels in one number: when there is none, no level needs to be asked.
      const isUnlimited = hierarchicalLimit !== null && limitOf(hierarchicalLimit) === null;
      const limits = isUnlimited ? UNLIMITED : this.limits(own, detail.workingSetBytes, machineBytes);
      return withHiddenLimit({ usageBytes, ...detail, ...limits }, limitOf(hierarchicalLimit), machineBytes);
    }
    return null;
  }

  private limits(own: MemoryLevel, workingSetBytes: number | null, machineBytes: number | null): Limits {
    const limits: Limits = { ...UNLIMITED };
    for (const level of this.levels) {
      limits.highBytes = lower(limits.highBytes, level.high());
      const limitBytes = level.limit();
      if (limitBytes === null) continue;
      if (limits.limitBytes === null || limitBytes < limits.limitBytes) {
        limits.limitBytes = limitBytes;
        limits.byAncestor = level !== this.levels[0];
      }
      if (machineBytes !== null && limitBytes >= machineBytes) continue;
      const used = level === own ? workingSetBytes : level.workingSet();
      if (used !== null) limits.headroomBytes = lower(limits.headroomBytes, Math.max(0, limitBytes - used));
    }
    return limits;
  }
}

type Limits = Pick<MemoryReading, 'limitBytes' | 'highBytes' | 'byAncestor' | 'headroomBytes'>;

const UNLIMITED: Limits = { limitBytes: null, highBytes: null, byAncestor: false, headroomBytes: null };

/** v1 tells the lowest limit up the tree even where the ancestors cannot be seen (the task limit of ECS). */
function withHiddenLimit(
  reading: MemoryReading,
  hiddenBytes: number | null,
  machineBytes: number | null,
): MemoryReading {
  if (hiddenBytes === null || (reading.limitBytes !== null && hiddenBytes >= reading.limitBytes)) return reading;
  reading.limitBytes = hiddenBytes;
  reading.byAncestor = true;
  if (reading.workingSetBytes !== null && (machineBytes === null || hiddenBytes < machineBytes)) {
    reading.headroomBytes = lower(reading.headroomBytes, Math.max(0, hiddenBytes - reading.workingSetBytes));
  }
  return reading;
}

/** The memory controller's files in one directory. */
class MemoryLevel {
  private readonly usageFile: KernelFile;
  private readonly limitFile: KernelFile;
  private readonly highFile: KernelFile | null;
  private readonly peakFile: KernelFile;
  private readonly kernelFile: KernelFile | null;
  private readonly oomFile: KernelFile;
  private readonly statFile: KernelFile;

  constructor(
    files: KernelFiles,
    directory: string,
    private readonly names: MemoryFiles,
  ) {
    const file = (name: string): KernelFile => files.file(`${directory}/${name}`);
    this.usageFile = file(names.usage);
    this.limitFile = file(names.limit);
    this.highFile = names.high === null ? null : file(names.high);
    this.peakFile = file(names.peak);
    this.kernelFile = names.kernel === null ? null : file(names.kernel);
    this.oomFile = file(names.oom);
    this.statFile = file('memory.stat');
  }

  usage(): number | null {
    return exactCount(this.usageFile.number());
  }

  limit(): number | null {
    return limitOf(this.limitFile.number());
  }

  high(): number | null {
    return limitOf(this.highFile?.number() ?? null);
  }

  workingSet(): number | null {
    const usageBytes = this.usage();
    const inactiveFileBytes = exactCount(this.line(this.statFile.read(), this.names.stat.inactiveFile));
    return usageBytes === null || inactiveFileBytes === null ? null : Math.max(0, usageBytes - inactiveFileBytes);
  }

  detail(usageBytes: number) {
    const { stat: keys } = this.names;
    const stat = this.statFile.read();
    const count = (key: string | null): number | null => exactCount(this.line(stat, key));
    const inactiveFileBytes = count(keys.inactiveFile);
    return {
      workingSetBytes: inactiveFileBytes === null ? null : Math.max(0, usageBytes - inactiveFileBytes),
      anonBytes: count(keys.anon),
      fileBytes: count(keys.file),
      kernelBytes:
        count(keys.kernel) ?? sum(keys.kernelParts.map(count)) ?? exactCount(this.kernelFile?.number() ?? null),
      peakBytes: exactCount(this.peakFile.number()),
      oomKills: exactCount(this.line(this.oomFile.read(), 'oom_kill')),
      hierarchicalLimit: this.line(stat, keys.hierarchicalLimit),
    };
  }

  private line(text: string | null, key: string | null): number | null {
    return text === null || key === null ? null : lineNumber(text, key);
  }
}

/** v1 has no word for "no limit": it writes 2^63 rounded down to a page, which is no exact count. 0 would allow no process. */
function limitOf(value: number | null): number | null {
  return value === 0 ? null : exactCount(value);
}

/** Null unless at least one part is known. */
function sum(parts: readonly (number | null)[]): number | null {
  const known = parts.filter((part) => part !== null);
  return known.length === 0 ? null : known.reduce((total, part) => total + part, 0);
}

function lower(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
