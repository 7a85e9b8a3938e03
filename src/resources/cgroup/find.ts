import type { ResourceSample } from '../../core/record.js';
import type { KernelTree } from './kernel-file.js';
import { parseMembership } from './membership.js';
import { type CgroupMount, parseMountInfo } from './mount-info.js';

/** One controller of the process's cgroup. Directories run from the own cgroup up to the mount point. */
export interface ControllerCgroup {
  version: 'v1' | 'v2';
  directories: readonly string[];
  trust: 'exact' | 'guess';
}

/** Cgroups of this process by controller. A missing one is null. */
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

/** A search by process id reads at most so many directories. */
const MAX_SEARCHED = 2_000;

/** Finds the own cgroup per controller: v1 where a v1 mount carries it, else v2. Never throws. */
export function discoverCgroups(tree: KernelTree): CgroupLayout {
  const membership = parseMembership(tree.read('/proc/self/cgroup'));
  const mounts = parseMountInfo(tree.read('/proc/self/mountinfo'));
  const find = (path: string | undefined | null, carries: (mount: CgroupMount) => boolean, files: readonly string[]) =>
    path === undefined || path === null ? null : best(path, mounts.filter(carries), tree, files);

  const unified = find(membership.v2, (mount) => mount.version === 'v2', V2_FILES);
  const controller = (name: keyof typeof V1_FILES): ControllerCgroup | null =>
    find(membership.v1.get(name), (m) => m.version === 'v1' && m.controllers.has(name), V1_FILES[name]) ?? unified;

  const layout = { cpu: controller('cpu'), cpuacct: controller('cpuacct'), memory: controller('memory'), unified };
  return { ...layout, version: nameVersion(layout), trust: rateTrust(layout) };
}

type Controllers = Omit<CgroupLayout, 'version' | 'trust'>;

function nameVersion({ cpu, cpuacct, memory, unified }: Controllers): CgroupLayout['version'] {
  const v1 = [cpu, cpuacct, memory].some((controller) => controller?.version === 'v1');
  if (unified === null) return v1 ? 'v1' : 'none';
  return v1 ? 'hybrid' : 'v2';
}

function rateTrust({ cpu, cpuacct, memory }: Controllers): CgroupLayout['trust'] {
  const found = [cpu, cpuacct, memory].filter((controller) => controller !== null);
  if (found.length === 0) return 'none';
  return found.every((controller) => controller.trust === 'exact') ? 'exact' : 'guess';
}

/** Selects a mount of the hierarchy: the most certain, then the usual path, then the one with more visible ancestors. */
function best(
  path: string,
  mounts: readonly CgroupMount[],
  tree: KernelTree,
  files: readonly string[],
): ControllerCgroup | null {
  const [chosen] = mounts
    .flatMap((mount) => {
      const located = locateCgroup(path, mount, tree, files);
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
      };
}

const isUsualPlace = (point: string): boolean => point === '/sys/fs/cgroup' || point.startsWith('/sys/fs/cgroup/');

const hasOne = (tree: KernelTree, directory: string, files: readonly string[]): boolean =>
  files.some((file) => tree.has(`${directory}/${file}`));

/** The directory exactly `depth` levels below `top` whose `cgroup.procs` lists the own process. */
function findOwn(tree: KernelTree, top: string, depth: number): string | null {
  let level = [top];
  let searched = 0;
  for (let below = 0; below < depth; below++) {
    const next: string[] = [];
    for (const directory of level) {
      if (++searched > MAX_SEARCHED) return null;
      for (const name of tree.folders(directory)) next.push(`${directory}/${name}`);
    }
    level = next;
  }
  const own = new RegExp(`^(${process.pid}|${pidIn(tree)})$`, 'm');
  for (const directory of level) {
    if (++searched > MAX_SEARCHED) return null;
    if (own.test(tree.read(`${directory}/cgroup.procs`))) return directory;
  }
  return null;
}

/** The own process id as the file tree knows it. */
function pidIn(tree: KernelTree): number {
  return Number(/^Pid:\s*(\d+)$/m.exec(tree.read('/proc/self/status'))?.[1] ?? process.pid);
}

/** The process's own directory in a mounted hierarchy, and how sure that is. */
interface LocatedCgroup {
  /** From the own directory up to and including the mount point. */
  directories: readonly string[];
  /** Lower is surer: 0 exact, 1 found by process id, 2 by the path's tail, 3 the mount point for want of better. */
  doubt: 0 | 1 | 2 | 3;
}

/** Finds the directory of the cgroup `path` (of `/proc/self/cgroup`) below `mount`; null when the mount shows nothing usable. */
function locateCgroup(
  path: string,
  mount: CgroupMount,
  tree: KernelTree,
  files: readonly string[],
): LocatedCgroup | null {
  const { point } = mount;
  const found = (directory: string, doubt: LocatedCgroup['doubt']): LocatedCgroup | null =>
    hasOne(tree, directory, files) ? { directories: upwards(directory, point), doubt } : null;

  const below = pathBelow(path, mount.root);
  const exact = below === null ? null : found(join(point, below), 0);
  if (exact !== null) return exact;

  // A mount made outside of the cgroup namespace: it starts as many levels above the own cgroup as it has "..".
  if (/^(\/\.\.)+$/.test(mount.root)) {
    const own = findOwn(tree, point, mount.root.length / 3 + (path === '/' ? 0 : path.split('/').length - 1));
    const byProcess = own === null ? null : found(own, 1);
    if (byProcess !== null) return byProcess;
  }

  // Nested runtimes (kind, Docker in Docker) show only the tail of the path.
  if (!hasParentStep(path)) {
    for (let slash = path.indexOf('/', 1); slash > 0; slash = path.indexOf('/', slash + 1)) {
      const byTail = found(join(point, path.slice(slash)), 2);
      if (byTail !== null) return byTail;
    }
  }
  return found(point, 3);
}

/** `path` as seen from `root`, `''` for root itself; null when it is not inside (whole components: /fo is no parent of /foo). */
function pathBelow(path: string, root: string): string | null {
  if (hasParentStep(path) || hasParentStep(root)) return null;
  if (root === '/') return path === '/' ? '' : path;
  if (path === root) return '';
  return path.startsWith(`${root}/`) ? path.slice(root.length) : null;
}

const hasParentStep = (path: string): boolean => path.split('/').includes('..');

const join = (point: string, below: string): string => (point === '/' ? below : `${point}${below}`) || '/';

function upwards(directory: string, top: string): string[] {
  const directories = [directory];
  for (let at = directory; at.length > top.length; directories.push(at)) at = at.slice(0, at.lastIndexOf('/')) || '/';
  return directories;
}
