import type { ControllerCgroup } from './discovery.js';
import type { KernelFiles } from '../kernel/kernel-file.js';
import { MEMORY_FILES } from './memory-files.js';
import { limitOf, MemoryLevel } from './memory-level.js';
import type { Pace } from '../kernel/pace.js';

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
  private readonly limitsPace: Pace;
  /** v1's lowest limit of all levels in one number, as last read. */
  private hierarchicalLimit: number | null = null;

  constructor(files: KernelFiles, { version, directories }: ControllerCgroup) {
    this.levels = directories.map((directory) => new MemoryLevel(files, directory, MEMORY_FILES[version]));
    this.limitsPace = files.rarely();
  }

  /** Null when no level tells its usage. Usage is of now, limits are a few seconds old at most. */
  read(nowMs: number, machineBytes: number | null): MemoryReading | null {
    // Where the controller is off for the own cgroup (v2), the nearest ancestor accounts for it.
    for (const own of this.levels) {
      const usageBytes = own.usage();
      if (usageBytes === null) continue;
      const stat = own.statText();
      const reading = own.detail(usageBytes, stat);
      this.refreshLimits(nowMs, own.hierarchicalLimit(stat));
      this.applyLimits(reading, own, machineBytes);
      applyHiddenLimit(reading, this.hiddenBytes, machineBytes);
      return reading;
    }
    return null;
  }

  /**
   * What is left at the least: as {@link MemoryReading.headroomBytes}, but file pages that can be reclaimed count as used,
   * so that one short file a level is enough. Of the limits that {@link read} has seen; null without any.
   */
  leastLeftBytes(): number | null {
    let leastBytes: number | null = null;
    for (const level of this.levels) {
      const limitBytes = level === this.levels[0] ? lower(level.limitBytes, this.hiddenBytes) : level.limitBytes;
      const usageBytes = limitBytes === null ? null : level.usage();
      if (usageBytes !== null) leastBytes = lower(leastBytes, limitBytes! - usageBytes);
    }
    return leastBytes;
  }

  private get hiddenBytes(): number | null {
    return limitOf(this.hierarchicalLimit);
  }

  private refreshLimits(nowMs: number, hierarchicalLimit: number | null): void {
    const changed = hierarchicalLimit !== this.hierarchicalLimit;
    if (!this.limitsPace.due(nowMs) && !changed) return;
    this.hierarchicalLimit = hierarchicalLimit;
    // When v1 says that no level has a limit, none needs to be asked.
    const isUnlimited = hierarchicalLimit !== null && limitOf(hierarchicalLimit) === null;
    for (const level of this.levels) level.refreshLimits(isUnlimited);
  }

  private applyLimits(reading: MemoryReading, own: MemoryLevel, machineBytes: number | null): void {
    for (const level of this.levels) {
      const { limitBytes } = level;
      reading.highBytes = lower(reading.highBytes, level.highBytes);
      if (limitBytes === null) continue;
      if (reading.limitBytes === null || limitBytes < reading.limitBytes) {
        reading.limitBytes = limitBytes;
        reading.byAncestor = level !== this.levels[0];
      }
      if (machineBytes !== null && limitBytes >= machineBytes) continue;
      const used = level === own ? reading.workingSetBytes : level.workingSet();
      if (used !== null) reading.headroomBytes = lower(reading.headroomBytes, Math.max(0, limitBytes - used));
    }
  }
}

/** v1 tells the lowest limit up the tree even where the ancestors cannot be seen (the task limit of ECS). */
function applyHiddenLimit(reading: MemoryReading, hiddenBytes: number | null, machineBytes: number | null): void {
  if (hiddenBytes === null || (reading.limitBytes !== null && hiddenBytes >= reading.limitBytes)) return;
  reading.limitBytes = hiddenBytes;
  reading.byAncestor = true;
  if (reading.workingSetBytes !== null && (machineBytes === null || hiddenBytes < machineBytes)) {
    reading.headroomBytes = lower(reading.headroomBytes, Math.max(0, hiddenBytes - reading.workingSetBytes));
  }
}

function lower(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
