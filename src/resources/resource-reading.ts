import { getHeapStatistics } from 'node:v8';
import type { MonotonicClock } from '../core/clock.js';
import type { ResourceSample } from '../core/record.js';
import { residentBytes } from '../core/resident-set.js';
import { type CpuLimit, type CpuUsage, NOT_LIMITED, readCpuLimit, readCpuUsage } from './cgroup/cpu.js';
import { type CgroupLayout, discoverCgroups } from './cgroup/find.js';
import type { KernelTexts } from '../ports/kernel-files.js';
import { parsePressure, parseRunQueueMs, takingTexts, readText } from './cgroup/kernel-file.js';
import { type MemoryReading, readMemory } from './cgroup/memory.js';
import { availableOn, type Machine, readMachine } from './machine.js';

/** Mounts are read again after this time, in about 0.3 ms. */
const REDISCOVER_EVERY_MS = 30_000;

/** Everything that is counted for this process at one moment, before windows and overrides. Unknown is null. */
export interface ResourceReading {
  /** Monotonic milliseconds, taken right beside the CPU time. */
  nowMs: number;
  /** Counters of two readings compare only when they are of the same place. */
  place: string;
  layout: CgroupLayout;
  machine: Machine;
  cpuUsage: CpuUsage;
  isCgroupUsage: boolean;
  cpuLimit: CpuLimit;
  memory: MemoryReading | null;
  /** Bytes available on the machine; read only when no limit is lower. */
  machineAvailableBytes: number | null;
  cpuStallSeconds: number | null;
  memoryStallSeconds: number | null;
  runQueueMs: number | null;
  process: ResourceSample['process'];
}

/** Reads the accounts of whatever cgroup the process is in now. Shared by readers that each keep their own baseline. */
export class ResourceReader {
  /** The files of a reading, for a thread that reads them. */
  readonly paths = new Set<string>();
  private readonly root: string;
  private found: { atMs: number; membership: string; mounts: string; layout: CgroupLayout } | null = null;

  constructor(
    root: string,
    private readonly now: MonotonicClock,
  ) {
    this.root = root.replace(/\/+$/, '');
  }

  /** `given`: {@link paths} as another thread has read them; files that it has not are read here. */
  read(given: KernelTexts | null = null): ResourceReading {
    const texts = given?.texts ?? null;
    const layout = this.placedLayout(texts);
    if (layout !== null) {
      const reading = takingTexts(texts, this.paths, () => this.readAt(layout, given));
      // Read afterwards: the process may have been moved, and its cgroup removed, at any time before.
      if (this.membership(texts) === this.found!.membership) return reading;
    }
    this.paths.clear();
    const [membership, mounts] = [this.membership(null), this.mounts(null)];
    this.found = { atMs: this.now(), membership, mounts, layout: discoverCgroups(this.root) };
    return takingTexts(null, this.paths, () => this.readAt(this.found!.layout, null));
  }

  /** Null where the mounts must be read again. */
  private placedLayout(texts: KernelTexts['texts'] | null): CgroupLayout | null {
    const { found } = this;
    if (found === null) return null;
    const isPlaced =
      texts === null ? this.now() - found.atMs < REDISCOVER_EVERY_MS : this.mounts(texts) === found.mounts;
    return isPlaced ? found.layout : null;
  }

  private membership(texts: KernelTexts['texts'] | null): string {
    return takingTexts(texts, this.paths, () => readText(`${this.root}/proc/self/cgroup`));
  }

  private mounts(texts: KernelTexts['texts'] | null): string {
    return takingTexts(texts, this.paths, () => readText(`${this.root}/proc/self/mountinfo`));
  }

  private readAt(layout: CgroupLayout, given: KernelTexts | null): ResourceReading {
    const { root } = this;
    // A cpuset is changed in place.
    const machine = readMachine(root);
    const { cpu, cpuacct, memory, unified } = layout;
    const nowMs = given?.atMs ?? this.now();
    const cgroupUsage = cpuacct === null ? null : readCpuUsage(root, cpuacct);
    const own = toUsage(given?.cpu ?? process.cpuUsage());
    const rssBytes = given?.rssBytes ?? residentBytes();
    const memoryReading = memory === null ? null : readMemory(root, memory, rssBytes);
    const boundBytes = Math.min(memoryReading?.limitBytes ?? Infinity, memoryReading?.highBytes ?? Infinity);
    const isLimited = boundBytes < (machine.memoryBytes ?? Infinity);
    const pressure = (of: 'cpu' | 'memory'): string =>
      unified === null ? '' : readText(`${root}${unified.directories[0]}/${of}.pressure`);
    const heap = getHeapStatistics();
    return {
      nowMs,
      place: [cpu, cpuacct, memory, unified].map((controller) => controller?.directories[0] ?? '').join('\n'),
      layout,
      machine,
      cpuUsage: cgroupUsage ?? own,
      isCgroupUsage: cgroupUsage !== null,
      cpuLimit: cpu === null ? NOT_LIMITED : readCpuLimit(root, cpu),
      memory: memoryReading,
      machineAvailableBytes: isLimited ? null : availableOn(root),
      cpuStallSeconds: parsePressure(pressure('cpu'), 'some'),
      memoryStallSeconds: parsePressure(pressure('memory'), 'full'),
      // The thread group's leader, which is Node's main thread.
      runQueueMs: parseRunQueueMs(readText(`${root}/proc/self/schedstat`)),
      process: {
        cpuSeconds: own.usageSeconds,
        rssBytes,
        heapUsedBytes: heap.used_heap_size,
        heapLimitBytes: heap.heap_size_limit,
      },
    };
  }
}

function toUsage({ user, system }: NodeJS.CpuUsage): CpuUsage {
  return { usageSeconds: (user + system) / 1e6, userSeconds: user / 1e6, systemSeconds: system / 1e6 };
}
