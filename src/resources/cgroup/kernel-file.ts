import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import type { MonotonicClock } from '../../core/clock.js';

/** The longest file that is read is `memory.stat`, 1 to 4 kB. */
const BUFFER_BYTES = 16 * 1024;

/** Limits are changed in place, but seldom, and are a third of all reads: a change is noticed within this time. */
const RARE_EVERY_MS = 5_000;

/**
 * Reads kernel files through kept descriptors, synchronously: a tenth of the cost of opening them each time, and a hundredth
 * of the promise form. They are made in the kernel and never wait for a disk.
 */
export class KernelFiles {
  /** A cgroup was removed under a kept descriptor: what was found is out of date. */
  gone = false;
  private readonly buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  /** By path; null cannot be read, and is not tried again until {@link release}. */
  private readonly kept = new Map<string, number | null>();
  private readonly rare = new Map<string, { atMs: number; text: string | null }>();

  /**
   * @param root Put before every path.
   * @param keep Keep descriptors. Only kernel file systems show the present through a kept one; a copied tree may be
   *   replaced under it, so its files are opened for every read.
   */
  constructor(
    private readonly root: string,
    private keep: boolean,
    private readonly now: MonotonicClock,
  ) {}

  /** {@link read}, at most five seconds old where descriptors are kept: for what changes rarely or is dear to read. */
  readRarely(path: string): string | null {
    const known = this.rare.get(path);
    const atMs = this.now();
    if (this.keep && known !== undefined && Math.abs(atMs - known.atMs) < RARE_EVERY_MS) return known.text;
    const text = this.read(path);
    if (this.keep) this.rare.set(path, { atMs, text });
    return text;
  }

  /** Its text; null when it is missing, empty or cannot be read. Never throws. */
  read(path: string): string | null {
    let descriptor = this.kept.get(path);
    if (descriptor === null) return null;
    try {
      descriptor ??= openSync(`${this.root}${path}`, 'r');
      if (this.keep) this.kept.set(path, descriptor);
      const length = readSync(descriptor, this.buffer, 0, BUFFER_BYTES, 0);
      return length === 0 ? null : this.buffer.toString('latin1', 0, length);
    } catch (error) {
      // Every failure is "unknown"; only a removed cgroup also means that another one must be looked for.
      if ((error as NodeJS.ErrnoException).code === 'ENODEV') this.gone = true;
      if (this.keep) this.kept.set(path, null);
      if (this.keep && descriptor !== undefined) closeSync(descriptor);
      return null;
    } finally {
      if (!this.keep && descriptor !== undefined) closeSync(descriptor);
    }
  }

  /** Closes every descriptor. Later reads work, but open the file each time. */
  close(): void {
    this.keep = false;
    this.release();
  }

  /** Closes every descriptor, and tries again what could not be read. */
  release(): void {
    for (const descriptor of this.kept.values()) if (descriptor !== null) closeSync(descriptor);
    this.kept.clear();
    this.rare.clear();
    this.gone = false;
  }
}

/** The whole text of a file that is read once; `''` where there is none, as off Linux and in sandboxes. */
export function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

const INTEGER = /(-?\d+)(?=\s|$)/y;

/** The decimal integer that stands at `at`; null for anything else, and for 2^63 and above, which is no figure. */
function integerAt(text: string | null, at: number): number | null {
  if (text === null) return null;
  INTEGER.lastIndex = at;
  const found = INTEGER.exec(text);
  const value = found === null ? Infinity : Number(found[1]);
  return value < 2 ** 63 ? value : null;
}

/** The number at the start. */
export const firstNumber = (text: string | null): number | null => integerAt(text, 0);

/** The number after the first space. */
export function secondNumber(text: string | null): number | null {
  const space = text === null ? -1 : text.indexOf(' ');
  return space < 0 ? null : integerAt(text, space + 1);
}

/** The number of the line `key number`: the order and set of lines differ between kernels. */
export function lineNumber(text: string | null, key: string): number | null {
  if (text === null) return null;
  const line = `${key} `;
  const at = text.startsWith(line) ? 0 : text.indexOf(`\n${line}`) + 1;
  return at === 0 && !text.startsWith(line) ? null : integerAt(text, at + line.length);
}

/** A count, or a number of bytes, that a double holds exactly; null beyond that, because then it is no real one. */
export const exactCount = (value: number | null): number | null =>
  value === null || value < 0 || value > Number.MAX_SAFE_INTEGER ? null : value;

/** A counter of time in seconds; null for what no counter says. */
export const seconds = (value: number | null, unitsPerSecond: number): number | null =>
  value === null || value < 0 ? null : value / unitsPerSecond;

/**
 * The running total of a pressure file (Documentation/accounting/psi.rst), seconds: `some` task waited, or all (`full`) did.
 */
export function parsePressure(text: string | null, of: 'some' | 'full'): number | null {
  const total = new RegExp(`^${of} .*total=(\\d+)$`, 'm').exec(text ?? '');
  return total === null ? null : seconds(firstNumber(total[1]!), 1e6);
}

/** Field 2 of `schedstat`, in milliseconds: how long the task was runnable but not running (Documentation/scheduler/sched-stats.rst). */
export const parseRunQueueMs = (text: string | null): number | null => seconds(secondNumber(text), 1e6);
