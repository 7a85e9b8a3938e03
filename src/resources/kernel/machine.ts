import { readFileSync } from 'node:fs';
import { availableParallelism, freemem, totalmem } from 'node:os';
import type { KernelFile, KernelFiles } from './kernel-file.js';
import { exactCount, numberAfter } from './kernel-text.js';
import type { Pace } from './pace.js';

/** What the machine allows where no cgroup says less. */
export class Machine {
  /** CPUs the process may run on. `os.availableParallelism()` will not do: newer versions of Node mix the quota in, rounded. */
  readonly cpus: number | null;
  readonly memoryBytes: number | null;
  private readonly offLinux: boolean;
  private readonly meminfo: KernelFile;
  private readonly meminfoPace: Pace;
  private available: number | null = null;

  /** Reads what changes rarely; made anew whenever the cgroup is looked for. */
  constructor(root: string, files: KernelFiles) {
    this.offLinux = process.platform !== 'linux' && root === '';
    this.meminfo = files.file('/proc/meminfo');
    this.meminfoPace = files.rarely();
    this.cpus = this.offLinux ? availableParallelism() : allowedCpus(root);
    this.memoryBytes = this.offLinux ? totalmem() : totalMemory(root);
  }

  /**
   * Bytes that the machine can still give away without swapping; null when it does not say. The kernel adds it up over
   * all zones and CPUs, one of the dearer reads, and it is no account of this process: up to five seconds old.
   */
  availableBytes(nowMs: number): number | null {
    if (this.meminfoPace.due(nowMs)) this.available = this.offLinux ? freemem() : this.availableNow();
    return this.available;
  }

  private availableNow(): number | null {
    const text = this.meminfo.read();
    const kilobytes = text === null ? null : numberAfter(text, 'MemAvailable:');
    return exactCount(kilobytes === null ? null : kilobytes * 1024);
  }
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

/** The affinity covers cpusets of both versions of cgroups. */
function allowedCpus(root: string): number | null {
  return countCpus(/^Cpus_allowed_list:\s*(\S+)$/m.exec(readText(`${root}/proc/self/status`))?.[1] ?? '');
}

function totalMemory(root: string): number | null {
  const kilobytes = Number(/^MemTotal:\s*(\d{1,12}) kB$/m.exec(readText(`${root}/proc/meminfo`))?.[1] ?? 0);
  return kilobytes === 0 ? null : kilobytes * 1024;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    // A sandbox without the file: then it is unknown.
    return '';
  }
}
