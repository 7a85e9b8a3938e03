import { existsSync, readdirSync } from 'node:fs';
import type { ResourceSample } from '../../core/record.js';
import { type DirectoryProbe, locateCgroup } from './cgroup-directory.js';
import { textOf } from './kernel-file.js';
import { parseMembership } from './membership.js';
import { type CgroupMount, parseMountInfo } from './mount-info.js';

/** One controller of the process's cgroup. Directories run from the own cgroup up to the mount point. */
export interface ControllerCgroup {
  version: 'v1' | 'v2';
  directories: readonly string[];
  trust: 'exact' | 'guess';
  /** The root of the hierarchy: its account is the whole machine's. */
  isRoot: boolean;
}

/** Where the kernel keeps this process's accounts. What is not there is null. */
export interface CgroupLayout {
  version: ResourceSample['limits']['version'];
  trust: ResourceSample['limits']['trust'];
  /** Quota and throttling. */
  cpu: ControllerCgroup | null;
  cpuacct: ControllerCgroup | null;
  memory: ControllerCgroup | null;
  /** The v2 cgroup, for pressure: hybrid hosts have it too. */
  unified: ControllerCgroup | null;
}

/** Files of which a controller's directory has at least one. */
const V1_FILES = {
  cpu: ['cpu.cfs_quota_us', 'cpu.stat', 'cpu.shares'],
  cpuacct: ['cpuacct.usage', 'cpuacct.stat'],
  memory: ['memory.usage_in_bytes', 'memory.limit_in_bytes', 'memory.stat'],
} as const;
const V2_FILES = ['cgroup.controllers', 'cgroup.procs', 'cpu.stat', 'cpu.max', 'memory.current', 'memory.max'];
/** The kernel's admin guides: v1 has the first in the root only, v2 has the others everywhere else. */
const ROOT_V1_FILE = 'release_agent';
const BELOW_ROOT_V2_FILES = ['cgroup.events', 'cpu.max', 'memory.max'];

/** A search by process id reads at most so many directories. */
const MAX_SEARCHED = 2_000;

/** Finds the own cgroup per controller: v1 where a v1 mount carries it, else v2. Never throws. */
export function discoverCgroups(root: string): CgroupLayout {
  const membership = parseMembership(textOf(`${root}/proc/self/cgroup`));
  const mounts = parseMountInfo(textOf(`${root}/proc/self/mountinfo`));
  const find = (path: string | undefined | null, carries: (mount: CgroupMount) => boolean, files: readonly string[]) =>
    path === undefined || path === null ? null : best(path, mounts.filter(carries), probeOf(root, files));

  const unified = find(membership.v2, (mount) => mount.version === 'v2', V2_FILES);
  const controller = (name: keyof typeof V1_FILES): ControllerCgroup | null =>
    find(membership.v1.get(name), (m) => m.version === 'v1' && m.controllers.has(name), V1_FILES[name]) ?? unified;

  const layout = { cpu: controller('cpu'), cpuacct: controller('cpuacct'), memory: controller('memory'), unified };
  return { ...layout, version: versionOf(layout), trust: trustOf(layout) };
}

type Controllers = Omit<CgroupLayout, 'version' | 'trust'>;

function versionOf({ cpu, cpuacct, memory, unified }: Controllers): CgroupLayout['version'] {
  const v1 = [cpu, cpuacct, memory].some((controller) => controller?.version === 'v1');
  if (unified === null) return v1 ? 'v1' : 'none';
  return v1 ? 'hybrid' : 'v2';
}

function trustOf({ cpu, cpuacct, memory }: Controllers): CgroupLayout['trust'] {
  const found = [cpu, cpuacct, memory].filter((controller) => controller !== null);
  if (found.length === 0) return 'none';
  return found.every((controller) => controller.trust === 'exact') ? 'exact' : 'guess';
}

/** Of several mounts of one hierarchy: the surest, then the usual place, then the one that shows more ancestors. */
function best(path: string, mounts: readonly CgroupMount[], probe: Probe): ControllerCgroup | null {
  const [chosen] = mounts
    .flatMap((mount) => {
      const located = locateCgroup(path, mount, probe);
      return located === null ? [] : [{ ...located, mount }];
    })
    .sort(
      (a, b) =>
        a.doubt - b.doubt ||
        Number(isUsualPlace(b.mount.point)) - Number(isUsualPlace(a.mount.point)) ||
        b.directories.length - a.directories.length,
    );
  return chosen === undefined
    ? null
    : {
        version: chosen.mount.version,
        directories: chosen.directories,
        trust: chosen.doubt <= 1 ? 'exact' : 'guess',
        isRoot: probe.isRoot(chosen.directories[0]!, chosen.mount.version),
      };
}

const isUsualPlace = (point: string): boolean => point === '/sys/fs/cgroup' || point.startsWith('/sys/fs/cgroup/');

interface Probe extends DirectoryProbe {
  isRoot(directory: string, version: ControllerCgroup['version']): boolean;
}

function probeOf(root: string, files: readonly string[]): Probe {
  const has = (directory: string, file: string): boolean => existsSync(`${root}${directory}/${file}`);
  return {
    isCgroup: (directory) => files.some((file) => has(directory, file)),
    isRoot: (directory, version) =>
      version === 'v1' ? has(directory, ROOT_V1_FILE) : !BELOW_ROOT_V2_FILES.some((file) => has(directory, file)),
    findOwn: (top, depth) => findOwn(root, top, depth),
  };
}

/** Breadth first, because the own cgroup is exactly `depth` levels down. */
function findOwn(root: string, top: string, depth: number): string | null {
  let level = [top];
  let searched = 0;
  for (let below = 0; below < depth; below++) {
    const next: string[] = [];
    for (const directory of level) {
      if (++searched > MAX_SEARCHED) return null;
      for (const name of subdirectories(`${root}${directory}`)) next.push(`${directory}/${name}`);
    }
    level = next;
  }
  const own = new RegExp(`^(${process.pid}|${pidIn(root)})$`, 'm');
  for (const directory of level) {
    if (++searched > MAX_SEARCHED) return null;
    if (own.test(textOf(`${root}${directory}/cgroup.procs`))) return directory;
  }
  return null;
}

/** The own process id as the file tree below `root` knows it. */
function pidIn(root: string): number {
  return Number(/^Pid:\s*(\d+)$/m.exec(textOf(`${root}/proc/self/status`))?.[1] ?? process.pid);
}

function subdirectories(directory: string): string[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch {
    // A cgroup that was removed meanwhile, or that may not be read, cannot be searched.
    return [];
  }
}
