export interface CgroupMount {
  version: 'v1' | 'v2';
  /** The directory of the hierarchy that is visible at {@link point}; above the namespace's root it is `/..`, `/../..`, … */
  root: string;
  point: string;
  /** The v1 controllers that it carries, from its super options: directory names may lie. */
  controllers: ReadonlySet<string>;
}

/**
 * The cgroup mounts of `/proc/self/mountinfo` (proc_pid_mountinfo(5)): `id parent major:minor root point options
 * [optional…] - type source super-options`. A mount hidden by a later one at the same point is left out.
 */
export function parseMountInfo(text: string): CgroupMount[] {
  const byPoint = new Map<string, CgroupMount | null>();
  for (const line of text.split('\n')) {
    // The number of optional fields varies, so the separator is found first.
    const separator = line.indexOf(' - ');
    if (separator < 0) continue;
    const before = line.slice(0, separator).split(' ');
    const [type, , superOptions = ''] = line.slice(separator + 3).split(' ');
    const root = before[3];
    const rawPoint = before[4];
    if (root === undefined || rawPoint === undefined || !root.startsWith('/') || !rawPoint.startsWith('/')) continue;
    const version = type === 'cgroup' ? 'v1' : type === 'cgroup2' ? 'v2' : null;
    const point = unescapeOctal(rawPoint);
    byPoint.delete(point);
    byPoint.set(
      point,
      version === null
        ? null
        : { version, root: unescapeOctal(root), point, controllers: new Set(superOptions.split(',')) },
    );
  }
  return [...byPoint.values()].filter((mount) => mount !== null);
}

/** The kernel writes space, tab, newline and backslash as three octal digits. */
function unescapeOctal(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
