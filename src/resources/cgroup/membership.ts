/** The cgroup of the process in each hierarchy, by `/proc/self/cgroup`. */
export interface Membership {
  /** Path in the cgroup v2 hierarchy; null when there is none. */
  v2: string | null;
  v1: ReadonlyMap<string, string>;
}

/** Only the first two colons separate: the path may contain more (`…slice:cri-containerd:<id>`). The kernel marks that of a removed cgroup. */
const LINE = /^(\d+):([^:]*):(\/.*?)(?: \(deleted\))?$/s;

/** Parses `/proc/self/cgroup` (cgroups(7)): lines of `id:controllers:path` in any order. Lines that are none are skipped. */
export function parseMembership(text: string): Membership {
  let v2: string | null = null;
  const v1 = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, id, controllers, path] = LINE.exec(line) ?? [];
    if (path === undefined || controllers === undefined) continue;
    if (controllers === '') {
      if (id === '0') v2 ??= path;
      continue;
    }
    for (const controller of controllers.split(',')) if (!v1.has(controller)) v1.set(controller, path);
  }
  return { v2, v1 };
}
