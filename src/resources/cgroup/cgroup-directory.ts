import type { CgroupMount } from './mount-info.js';

/** The process's own directory in a mounted hierarchy, and how sure that is. */
export interface LocatedCgroup {
  /** From the own directory up to and including the mount point. */
  directories: readonly string[];
  /** Lower is surer: 0 exact, 1 found by process id, 2 by the path's tail, 3 the mount point for want of better. */
  doubt: 0 | 1 | 2 | 3;
}

/** What {@link locateCgroup} asks of the file system. */
export interface DirectoryProbe {
  /** A directory of the controller: it has at least one of its files. */
  isCgroup(directory: string): boolean;
  /** The directory `depth` levels below `top` whose `cgroup.procs` lists the own process. */
  findOwn(top: string, depth: number): string | null;
}

/** Finds the directory of the cgroup `path` (of `/proc/self/cgroup`) below `mount`; null when the mount shows nothing usable. */
export function locateCgroup(path: string, mount: CgroupMount, probe: DirectoryProbe): LocatedCgroup | null {
  const { point } = mount;
  const found = (directory: string, doubt: LocatedCgroup['doubt']): LocatedCgroup | null =>
    probe.isCgroup(directory) ? { directories: upwards(directory, point), doubt } : null;

  const below = pathBelow(path, mount.root);
  const exact = below === null ? null : found(join(point, below), 0);
  if (exact !== null) return exact;

  // A mount made outside of the cgroup namespace: it starts as many levels above the own cgroup as it has "..".
  if (/^(\/\.\.)+$/.test(mount.root)) {
    const own = probe.findOwn(point, mount.root.length / 3 + (path === '/' ? 0 : path.split('/').length - 1));
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
  let current = directory;
  while (current.length > top.length && current !== top) {
    current = current.slice(0, current.lastIndexOf('/')) || '/';
    directories.push(current);
  }
  return directories;
}
