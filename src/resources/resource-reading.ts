import { getHeapStatistics } from 'node:v8';
import type { MonotonicClock } from '../core/clock.js';
import type { ResourceSample } from '../core/record.js';
import { residentBytes } from '../core/resident-set.js';
import { type CpuLimit, type CpuUsage, NOT_LIMITED, readCpuLimit, readCpuUsage } from './cgroup/cpu.js';
import { type CgroupLayout, discoverCgroups } from './cgroup/find.js';
import type { KernelTexts } from '../ports/kernel-files.js';
import { KernelTree, parsePressure, parseRunQueueMs } from './cgroup/kernel-file.js';
import { type MemoryReading, readMemory } from './cgroup/memory.js';
import { availableOn, type Machine, readMachine } from './machine.js';

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
  private readonly tree: KernelTree;
  /** The layout, and the files that it follows from. */
  private found: { readonly membership: string; readonly mounts: string; readonly layout: CgroupLayout } | null = null;

  constructor(
    root: string,
    private readonly now: MonotonicClock,
  ) {
    this.tree = new KernelTree(root.replace(/\/+$/, ''));
  }

  /** The files of a reading, for a thread that reads them. */
  get paths(): ReadonlySet<string> {
    return this.tree.paths;
  }

  /** `given`: {@link paths} as another thread has read them; files that it has not are read here. */
  read(given: KernelTexts | null = null): ResourceReading {
    const { tree } = this;
    tree.texts = given?.texts ?? null;
    const known = this.findLayout();
    const reading = known === null ? null : this.readAt(known, given);
    tree.texts = null;
    return reading ?? this.readAt(this.discover(), null);
  }

  /** Null at first, and after the process was moved or the mounts have changed. */
  private findLayout(): CgroupLayout | null {
    const { found, tree } = this;
    if (found === null || tree.read('/proc/self/cgroup') !== found.membership) return null;
    return tree.read('/proc/self/mountinfo') === found.mounts ? found.layout : null;
  }

  private discover(): CgroupLayout {
    const { tree } = this;
    tree.paths.clear();
    const [membership, mounts] = [tree.read('/proc/self/cgroup'), tree.read('/proc/self/mountinfo')];
    const layout = discoverCgroups(tree);
    this.found = { membership, mounts, layout };
    return layout;
  }

  private readAt(layout: CgroupLayout, given: KernelTexts | null): ResourceReading {
    const { tree } = this;
    // A cpuset is changed in place.
    const machine = readMachine(tree);
    const { cpu, cpuacct, memory, unified } = layout;
    const nowMs = given?.atMs ?? this.now();
    const cgroupUsage = cpuacct === null ? null : readCpuUsage(tree, cpuacct);
    const own = toUsage(given?.cpu ?? process.cpuUsage());
    const rssBytes = given?.rssBytes ?? residentBytes();
    const memoryReading = memory === null ? null : readMemory(tree, memory, rssBytes);
    const boundBytes = Math.min(memoryReading?.limitBytes ?? Infinity, memoryReading?.highBytes ?? Infinity);
    const isLimited = boundBytes < (machine.memoryBytes ?? Infinity);
    const pressure = (of: 'cpu' | 'memory'): string =>
      unified === null ? '' : tree.read(`${unified.directories[0]}/${of}.pressure`);
    const heap = getHeapStatistics();
    return {
      nowMs,
      place: [cpu, cpuacct, memory, unified].map((controller) => controller?.directories[0] ?? '').join('\n'),
      layout,
      machine,
      cpuUsage: cgroupUsage ?? own,
      isCgroupUsage: cgroupUsage !== null,
      cpuLimit: cpu === null ? NOT_LIMITED : readCpuLimit(tree, cpu),
      memory: memoryReading,
      machineAvailableBytes: isLimited ? null : availableOn(tree),
      cpuStallSeconds: parsePressure(pressure('cpu'), 'some'),
      memoryStallSeconds: parsePressure(pressure('memory'), 'full'),
      // The thread group's leader, which is Node's main thread.
      runQueueMs: parseRunQueueMs(tree.read('/proc/self/schedstat')),
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
