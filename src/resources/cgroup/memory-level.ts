import type { KernelFile, KernelFiles } from '../kernel/kernel-file.js';
import { exactCount, lineNumber } from '../kernel/kernel-text.js';
import type { MemoryFiles } from './memory-files.js';
import type { MemoryReading } from './memory-usage.js';

/** The memory controller's files in one directory. */
export class MemoryLevel {
  /** As last read. */
  limitBytes: number | null = null;
  highBytes: number | null = null;
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

  refreshLimits(isUnlimited: boolean): void {
    this.limitBytes = isUnlimited ? null : limitOf(this.limitFile.number());
    this.highBytes = isUnlimited ? null : limitOf(this.highFile?.number() ?? null);
  }

  workingSet(): number | null {
    const usageBytes = this.usage();
    return usageBytes === null ? null : this.workingSetOf(usageBytes, this.statText());
  }

  statText(): string | null {
    return this.statFile.read();
  }

  hierarchicalLimit(stat: string | null): number | null {
    return line(stat, this.names.stat.hierarchicalLimit);
  }

  /** All but the limits. */
  detail(usageBytes: number, stat: string | null): MemoryReading {
    const { anon, file } = this.names.stat;
    return {
      usageBytes,
      workingSetBytes: this.workingSetOf(usageBytes, stat),
      anonBytes: count(stat, anon),
      fileBytes: count(stat, file),
      kernelBytes: this.kernelBytes(stat),
      peakBytes: exactCount(this.peakFile.number()),
      oomKills: count(this.oomFile.read(), 'oom_kill'),
      limitBytes: null,
      highBytes: null,
      byAncestor: false,
      headroomBytes: null,
    };
  }

  private workingSetOf(usageBytes: number, stat: string | null): number | null {
    const inactiveFileBytes = count(stat, this.names.stat.inactiveFile);
    return inactiveFileBytes === null ? null : Math.max(0, usageBytes - inactiveFileBytes);
  }

  private kernelBytes(stat: string | null): number | null {
    if (this.kernelFile !== null) return exactCount(this.kernelFile.number());
    const { kernel, kernelParts } = this.names.stat;
    let bytes = count(stat, kernel);
    if (bytes !== null) return bytes;
    for (const part of kernelParts) {
      const partBytes = count(stat, part);
      if (partBytes !== null) bytes = (bytes ?? 0) + partBytes;
    }
    return bytes;
  }
}

const line = (text: string | null, key: string | null): number | null =>
  text === null || key === null ? null : lineNumber(text, key);

const count = (text: string | null, key: string | null): number | null => exactCount(line(text, key));

/** v1 has no word for "no limit": it writes 2^63 rounded down to a page, which is no exact count. 0 would allow no process. */
export function limitOf(value: number | null): number | null {
  return value === 0 ? null : exactCount(value);
}
