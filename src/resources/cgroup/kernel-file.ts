import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** The files of the kernel: the disk's, or texts that another thread has read. */
export class KernelTree {
  /** The files that were read since they were cleared. */
  readonly paths = new Set<string>();
  /** Texts by path, for as long as they are those of now; null: files are read. */
  texts: ReadonlyMap<string, string> | null = null;

  constructor(
    /** Replaces `/`; without a slash at its end. */
    readonly root: string,
  ) {}

  /** Opened for each read: what is kept open would be of the cgroup that it was. `''` where there is none, or it may not be read. */
  read(path: string): string {
    const file = `${this.root}${path}`;
    this.paths.add(file);
    const text = this.texts?.get(file);
    if (text !== undefined) return text;
    try {
      return readFileSync(file, 'utf8');
    } catch {
      return '';
    }
  }

  has(path: string): boolean {
    return existsSync(`${this.root}${path}`);
  }

  /** Names of the folders in a folder; none of one that was removed meanwhile, or may not be read. */
  folders(path: string): string[] {
    try {
      const entries = readdirSync(`${this.root}${path}`, { withFileTypes: true });
      return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    } catch {
      return [];
    }
  }
}

const INTEGER = /(-?\d+)(?=\s|$)/y;

/** The decimal integer at `at`; null for anything else, and for 2^63 and above, which is no figure. */
function integerAt(text: string, at: number): number | null {
  INTEGER.lastIndex = at;
  const found = INTEGER.exec(text);
  const value = found === null ? Infinity : Number(found[1]);
  return value < 2 ** 63 ? value : null;
}

export const firstNumber = (text: string): number | null => integerAt(text, 0);

export function secondNumber(text: string): number | null {
  const space = text.indexOf(' ');
  return space < 0 ? null : integerAt(text, space + 1);
}

/** The number of the line `key number`: the order and set of lines differ between kernels. */
export function lineNumber(text: string, key: string): number | null {
  const at = `\n${text}`.indexOf(`\n${key} `);
  return at < 0 ? null : integerAt(text, at + key.length + 1);
}

/** A count, or a number of bytes, that a double represents exactly; null beyond that, because then it is no real one. */
export const exactCount = (value: number | null): number | null =>
  value === null || value < 0 || value > Number.MAX_SAFE_INTEGER ? null : value;

/** A counter of time in seconds; null for a value that no counter has. */
export const seconds = (value: number | null, unitsPerSecond: number): number | null =>
  value === null || value < 0 ? null : value / unitsPerSecond;

/** The total of a pressure file (Documentation/accounting/psi.rst), seconds: `some` task waited, or all (`full`) did. */
export function parsePressure(text: string, of: 'some' | 'full'): number | null {
  const total = new RegExp(`^${of} .*total=(\\d+)$`, 'm').exec(text);
  return total === null ? null : seconds(firstNumber(total[1]!), 1e6);
}

/** Field 2 of `schedstat`, in milliseconds: how long the task was runnable but not running (Documentation/scheduler/sched-stats.rst). */
export const parseRunQueueMs = (text: string): number | null => seconds(secondNumber(text), 1e6);
