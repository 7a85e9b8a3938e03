import { getHeapStatistics } from 'node:v8';
import type { MonotonicClock } from '../core/clock.js';
import type { ResourceSample } from '../core/record.js';
import { type CpuLimitReading, CpuQuota } from './cgroup/cpu-quota.js';
import { type CpuUsage, type CpuUsageReading, cpuUsageOf } from './cgroup/cpu-usage.js';
import type { CgroupLayout } from './cgroup/discovery.js';
import type { KernelFile, KernelFiles } from './kernel/kernel-file.js';
import { secondNumber, seconds } from './kernel/kernel-text.js';
import { Machine } from './kernel/machine.js';
import { type MemoryReading, MemoryUsage } from './cgroup/memory-usage.js';
import { stallSeconds } from './cgroup/pressure.js';
import { ProcessMemory } from './kernel/process-memory.js';
import type { SchedulingReading } from './scheduling-history.js';

/** Everything that is counted for this process at one moment, before windows and overrides. */
export interface ResourceReading {
  /** Monotonic milliseconds, taken right beside the CPU time. */
  nowMs: number;
  /** Counters of two readings compare only when they are of the same place. */
  place: string;
  layout: CgroupLayout;
  cpuUsage: CpuUsageReading;
  cpuLimit: CpuLimitReading | null;
  /** CPUs the process may run on. */
  cpus: number | null;
  /** Null where no cgroup accounts for memory. */
  memory: MemoryReading | null;
  machineBytes: number | null;
  /** What the machine has left; read only where no limit is lower. */
  machineAvailableBytes: number | null;
  cpuStallSeconds: number | null;
  memoryStallSeconds: number | null;
  runQueueMs: number | null;
  process: ResourceSample['process'];
}

/** The opened accounts of one cgroup. A read takes tens of microseconds and never throws. */
export class CgroupAccounts {
  private readonly place: string;
  private readonly machine: Machine;
  private readonly usage: CpuUsage | null;
  private readonly quota: CpuQuota | null;
  private readonly memory: MemoryUsage | null;
  private readonly cpuPressure: KernelFile | null;
  private readonly memoryPressure: KernelFile | null;
  private readonly schedstat: KernelFile;
  private readonly ownMemory: ProcessMemory;

  constructor(
    private readonly layout: CgroupLayout,
    root: string,
    files: KernelFiles,
  ) {
    const { cpu, cpuacct, memory, unified } = layout;
    this.place = [cpu, cpuacct, memory, unified].map((controller) => controller?.directories[0] ?? '').join('\n');
    this.machine = new Machine(root, files);
    this.usage = cpuacct === null ? null : cpuUsageOf(files, cpuacct);
    this.quota = cpu === null ? null : new CpuQuota(files, cpu);
    this.memory = memory === null ? null : new MemoryUsage(files, memory);
    this.cpuPressure = unified === null ? null : files.file(`${unified.directories[0]}/cpu.pressure`);
    this.memoryPressure = unified === null ? null : files.file(`${unified.directories[0]}/memory.pressure`);
    // The thread group's leader, which is Node's main thread.
    this.schedstat = files.file('/proc/self/schedstat');
    this.ownMemory = new ProcessMemory(files);
  }

  read(now: MonotonicClock): ResourceReading {
    const nowMs = now();
    const fromCgroup = this.usage?.() ?? null;
    const processUsage = processCpu();
    const machineBytes = this.machine.memoryBytes;
    const memory = this.memory?.read(nowMs, machineBytes) ?? null;
    const heap = getHeapStatistics();
    return {
      nowMs,
      place: this.place,
      layout: this.layout,
      cpuUsage: fromCgroup ?? processUsage,
      cpuLimit: this.quota?.read(nowMs) ?? null,
      cpus: this.machine.cpus,
      memory,
      machineBytes,
      machineAvailableBytes:
        memory === null || memory.headroomBytes === null ? this.machine.availableBytes(nowMs) : null,
      cpuStallSeconds: stallSeconds(this.cpuPressure, 'some'),
      memoryStallSeconds: stallSeconds(this.memoryPressure, 'full'),
      runQueueMs: this.runQueueMs(),
      process: {
        cpuSeconds: processUsage.usageSeconds,
        rssBytes: this.ownMemory.rssBytes(),
        heapUsedBytes: heap.used_heap_size,
        heapLimitBytes: heap.heap_size_limit,
      },
    };
  }

  /** See {@link MemoryUsage.leastLeftBytes}. */
  memoryLeftBytes(): number | null {
    return this.memory?.leastLeftBytes() ?? null;
  }

  /** The part that tells of lost time: 3 or 4 files. */
  scheduling(now: MonotonicClock): SchedulingReading {
    const nowMs = now();
    return { nowMs, place: this.place, cpuLimit: this.quota?.read(nowMs) ?? null, runQueueMs: this.runQueueMs() };
  }

  /** Field 2 of `schedstat`: nanoseconds of waiting on a run queue (Documentation/scheduler/sched-stats.rst). */
  private runQueueMs(): number | null {
    const text = this.schedstat.read();
    const waitedSeconds = text === null ? null : seconds(secondNumber(text), 1e9);
    return waitedSeconds === null ? null : waitedSeconds * 1_000;
  }
}

function processCpu(): CpuUsageReading {
  const { user, system } = process.cpuUsage();
  return {
    from: 'process',
    usageSeconds: (user + system) / 1e6,
    userSeconds: user / 1e6,
    systemSeconds: system / 1e6,
  };
}
