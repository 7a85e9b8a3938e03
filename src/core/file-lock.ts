import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  statSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PerfError } from './perf.error.js';

/** How often the owner of a lock says that it lives, milliseconds. */
const BEAT_MS = 2_000;
/** A lock of another container or host that has not been renewed for so long belongs to nobody. */
const STALE_MS = 5 * BEAT_MS;

/** What it says when a living process holds the lock: `'process 42'`. */
export type InUse = (owner: string) => PerfError;

export interface FileLock {
  /** Another may have taken it over while this process stood still. */
  readonly isLost: boolean;
  /** Not where it is gone, either: who took it over may have ended since. */
  readonly isHeld: boolean;
  release(): void;
}

/**
 * Keeps two processes out of one file or folder: `<file>.lock` says who owns it. A lock whose process has ended is taken over at
 * once; one of another PID namespace or host, where no process can be asked, once it is not renewed any more.
 * @param signal ends the wait for a lock that may belong to nobody
 * @throws what `inUse` makes, when a living process holds it
 */
export async function lockFile(file: string, inUse: InUse, signal?: AbortSignal): Promise<FileLock> {
  const lock = `${file}.lock`;
  const startedMs = performance.now();
  let [sign, sinceMs] = ['', 0];
  for (;;) {
    try {
      const text = `${here()} ${process.pid} ${startOf(process.pid)}`;
      create(lock, text);
      return keep(lock, text);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const owner = read(lock);
    if (owner === null) continue;
    const { text, place, pid, start, renewedMs } = owner;
    const sameHouse = place === here();
    if (sameHouse && start === startOf(pid)) {
      throw inUse(pid === process.pid ? `process ${pid}, this one, for another application` : `process ${pid}`);
    }
    // Another kernel has another clock: only what changes here and now tells that its owner lives.
    if (sign !== `${text} ${renewedMs}`) [sign, sinceMs] = [`${text} ${renewedMs}`, performance.now()];
    const silentMs = kernelOf(place) === kernelOf(here()) ? Date.now() - renewedMs : performance.now() - sinceMs;
    if (!sameHouse && silentMs < STALE_MS) {
      if (performance.now() - startedMs > 2 * STALE_MS) throw inUse(`process ${pid}`);
      await sleep(BEAT_MS / 4, undefined, signal === undefined ? {} : { signal });
      continue;
    }
    takeAway(lock, text);
  }
}

/** Removes a lock that belongs to nobody: one process at a time, and only the lock that was looked at. */
function takeAway(lock: string, text: string): void {
  const taking = `${lock}.taking`;
  try {
    mkdirSync(taking);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    // Left by one that was killed in these few microseconds.
    const made = statSync(taking, { throwIfNoEntry: false });
    if (made !== undefined && Date.now() - made.mtimeMs > STALE_MS) rmdirSync(taking);
    return;
  }
  try {
    if (read(lock)?.text === text) rmSync(lock);
  } finally {
    rmdirSync(taking);
  }
}

/** A full disk makes a file and refuses its text: none is left. @throws EEXIST when there is one */
function create(lock: string, text: string): void {
  const file = openSync(lock, 'wx', 0o600);
  try {
    writeFileSync(file, text);
  } catch (error) {
    rmSync(lock);
    throw error;
  } finally {
    closeSync(file);
  }
}

function keep(lock: string, text: string): FileLock {
  const isHeld = (): boolean => read(lock)?.text === text;
  let beatMs = Date.now();
  const beat = setInterval(() => {
    try {
      const found = read(lock)?.text;
      // 0.1.0 removes it when it ends, whosever it is. After a standstill, who took it over may have ended.
      if (found === undefined && Date.now() - beatMs < STALE_MS) create(lock, text);
      else if (found === text) utimesSync(lock, new Date(), new Date());
      else return clearInterval(beat);
      beatMs = Date.now();
    } catch {
      // The disk refuses; what it says to the next write is reported there.
    }
  }, BEAT_MS).unref();
  return {
    get isLost() {
      return (read(lock)?.text ?? text) !== text;
    },
    get isHeld() {
      return isHeld();
    },
    release() {
      clearInterval(beat);
      if (isHeld()) rmSync(lock);
    },
  };
}

/** Null when it has gone meanwhile. */
function read(lock: string): { text: string; place: string; pid: number; start: string; renewedMs: number } | null {
  try {
    const text = readFileSync(lock, 'utf8');
    // 0.1.0 wrote no place, and asked for the process wherever it was.
    const [place = '', pid = '', start = ''] = (/^\d+ \S+$/.test(text) ? `${here()} ${text}` : text).split(' ');
    return { text, place, pid: Number(pid), start, renewedMs: statSync(lock).mtimeMs };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Where a pid means the same process: this host and PID namespace, since this boot. */
function here(): string {
  const read = (readOne: () => string): string => {
    try {
      return readOne().trim();
    } catch {
      return '-';
    }
  };
  const boot = read(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'));
  const namespace = read(() => readlinkSync('/proc/self/ns/pid'));
  return `${hostname()}/${boot}/${namespace}`;
}

const kernelOf = (place: string): string | undefined => place.split('/')[1];

/** When a process was started: pids are used again, in containers even at each start. `-` when there is none. */
function startOf(pid: number): string {
  try {
    // Field 22 of /proc/<pid>/stat, in clock ticks since boot; the command in field 2 may hold spaces.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // One that has ended keeps its pid until its parent asks for it, and some parents never do.
    return /[ZX]/.test(fields[0]!) ? '-' : (fields[19] ?? '-');
  } catch {
    return isAlive(pid) ? 'alive' : '-';
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
