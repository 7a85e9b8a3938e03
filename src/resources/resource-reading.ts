import { getHeapStatistics } from 'node:v8';
import type { MonotonicClock } from '../core/clock.js';
import type { ResourceSample } from '../core/record.js';
import { type CpuLimit, type CpuUsage, NOT_LIMITED, readCpuLimit, readCpuUsage } from './cgroup/cpu.js';
import { type CgroupLayout, discoverCgroups } from './cgroup/find.js';
import { KernelFiles, parsePressure, parseRunQueueMs } from './cgroup/kernel-file.js';
import { type MemoryReading, readMemory } from './cgroup/memory.js';
import { availableOn, type Machine, readMachine } from './machine.js';

/** Mounts, affinity and files that could not be read are looked at again after this time, at about 0.3 ms. */
const REDISCOVER_EVERY_MS = 30_000;

/** Everything that is counted for this process at one moment, before windows and overrides. Unknown is null. */
export interface ResourceReading {
  /** Monotonic milliseconds, taken right beside the CPU time. */
  nowMs: number;
  /** Counters of two readings compare only when they are of the same place. */
  place: string;
  layout: CgroupLayout;
  machine: Machine;
  /** Of the cgroup; else of the process. */
  cpuUsage: CpuUsage;
  isCgroupUsage: boolean;
  cpuLimit: CpuLimit;
  memory: MemoryReading | null;
  /** What the machine has left, up to five seconds old; read only where no limit is lower. */
  machineAvailableBytes: number | null;
  cpuStallSeconds: number | null;
  memoryStallSeconds: number | null;
  runQueueMs: number | null;
  process: ResourceSample['process'];
}

interface Found {
  atMs: number;
  membership: string | null;
  layout: CgroupLayout;
  machine: Machine;
}

/** Reads the accounts of whatever cgroup the process is in now. Shared by readers that each keep their own baseline. */
export class ResourceReader {
  private readonly root: string;
  private readonly files: KernelFiles;
  /** Null until the first read, so that a reader nobody uses opens nothing. */
  private found: Found | null = null;

  constructor(
    root: string,
    private readonly now: MonotonicClock,
  ) {
    this.root = root.replace(/\/+$/, '');
    this.files = new KernelFiles(this.root, this.root === '', now);
  }

  /** Synchronous, tens of microseconds; never throws. */
  read(): ResourceReading {
    const reading = this.readAt(this.current());
    // The cgroup was removed between the two looks: the next one is read at once.
    return this.files.gone ? this.readAt(this.discover()) : reading;
  }

  /** Gives back every descriptor. Reading goes on to work, at the price of opening the files each time. */
  close(): void {
    this.files.close();
  }

  /**
   * A kept descriptor of a cgroup that the process has left goes on to answer, with figures that no longer change. So the
   * membership itself is compared, each time.
   */
  private current(): Found {
    const { found, files } = this;
    if (found === null || files.gone || this.now() - found.atMs >= REDISCOVER_EVERY_MS) return this.discover();
    return files.read('/proc/self/cgroup') === found.membership ? found : this.discover();
  }

  private discover(): Found {
    this.files.release();
    this.found = {
      atMs: this.now(),
      membership: this.files.read('/proc/self/cgroup'),
      layout: discoverCgroups(this.root),
      machine: readMachine(this.root),
    };
    return this.found;
  }

  private readAt({ layout, machine }: Found): ResourceReading {
    const { files, root } = this;
    const { cpu, cpuacct, memory, unified } = layout;
    const nowMs = this.now();
    const cgroupUsage = cpuacct === null ? null : readCpuUsage(files, cpuacct);
    const own = processUsage();
    const rssBytes = process.memoryUsage.rss();
    const memoryReading = memory === null ? null : readMemory(files, memory, rssBytes);
    const isLimited = (memoryReading?.limitBytes ?? Infinity) < (machine.memoryBytes ?? Infinity);
    const pressure = (of: 'cpu' | 'memory'): string | null =>
      unified === null ? null : files.read(`${unified.directories[0]}/${of}.pressure`);
    const heap = getHeapStatistics();
    return {
      nowMs,
      place: [cpu, cpuacct, memory, unified].map((controller) => controller?.directories[0] ?? '').join('\n'),
      layout,
      machine,
      cpuUsage: cgroupUsage ?? own,
      isCgroupUsage: cgroupUsage !== null,
      cpuLimit: cpu === null ? NOT_LIMITED : readCpuLimit(files, cpu),
      memory: memoryReading,
      machineAvailableBytes: isLimited ? null : availableOn(root, files),
      cpuStallSeconds: parsePressure(pressure('cpu'), 'some'),
      memoryStallSeconds: parsePressure(pressure('memory'), 'full'),
      // The thread group's leader, which is Node's main thread.
      runQueueMs: parseRunQueueMs(files.read('/proc/self/schedstat')),
      process: {
        cpuSeconds: own.usageSeconds,
        rssBytes,
        heapUsedBytes: heap.used_heap_size,
        heapLimitBytes: heap.heap_size_limit,
      },
    };
  }
}

function processUsage(): CpuUsage {
  const { user, system } = process.cpuUsage();
  return { usageSeconds: (user + system) / 1e6, userSeconds: user / 1e6, systemSeconds: system / 1e6 };
}
