/** Which cgroup the process is in, per hierarchy: what `/proc/self/cgroup` says. */
export interface Membership {
  /** Path in the cgroup v2 hierarchy; null when there is none. */
  v2: string | null;
  v1: ReadonlyMap<string, string>;
}

/** Parses `/proc/self/cgroup` (cgroups(7)): lines of `id:controllers:path` in any order. Lines that are none are skipped. */
export function parseMembership(text: string): Membership {
  let v2: string | null = null;
  const v1 = new Map<string, string>();
  for (const line of text.split('\n')) {
    // Only the first two colons separate: the path may hold more (`…slice:cri-containerd:<id>`).
    const afterId = line.indexOf(':');
    const afterControllers = line.indexOf(':', afterId + 1);
    if (afterId <= 0 || afterControllers < 0) continue;
    const id = line.slice(0, afterId);
    const controllers = line.slice(afterId + 1, afterControllers);
    const path = withoutDeleted(line.slice(afterControllers + 1));
    if (!/^\d+$/.test(id) || !path.startsWith('/')) continue;
    if (controllers === '') {
      if (id === '0') v2 ??= path;
      continue;
    }
    for (const controller of controllers.split(',')) if (!v1.has(controller)) v1.set(controller, path);
  }
  return { v2, v1 };
}

/** The kernel marks the path of a removed cgroup that still has a process. */
function withoutDeleted(path: string): string {
  const mark = ' (deleted)';
  return path.endsWith(mark) ? path.slice(0, -mark.length) : path;
}
