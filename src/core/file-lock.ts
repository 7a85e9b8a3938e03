import {
  closeSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { threadId } from 'node:worker_threads';
import { PerfError } from './perf.error.js';

/** How often the owner of a lock renews it, milliseconds. */
const BEAT_MS = 2_000;
/** A lock of another container or host that was not renewed for this long has no living owner. */
const STALE_MS = 5 * BEAT_MS;
const RETRY_MS = BEAT_MS / 8;
/** A lock that still cannot be taken after this is an error, milliseconds. */
const GIVE_UP_MS = 3 * STALE_MS;

/** Makes the error for a lock whose owner lives: `'process 42'`. */
export type InUse = (owner: string) => PerfError;

export interface FileLock {
  /** False where another process took it over while this one was suspended, or removed it. */
  readonly isHeld: boolean;
  /** Never throws: a lock that cannot be removed is taken over by this process, or by another once this one has ended. */
  release(): void;
}

interface Owner {
  readonly text: string;
  readonly place: string;
  readonly pid: number;
  readonly start: string;
  readonly thread: number;
  readonly renewedMs: number;
}

/**
 * Keeps two processes out of one file or folder: `<file>.lock` names its owner. A lock whose process has ended is taken over at
 * once; one of another PID namespace or host, whose processes are invisible here, once it is not renewed any more.
 * @param signal ends the wait for a lock that may have no living owner
 * @throws what `inUse` makes, when its owner lives; PERF_ERR_STORE for a lock that cannot be taken, with the file to remove
 */
export async function lockFile(file: string, inUse: InUse, signal?: AbortSignal): Promise<FileLock> {
  const lock = `${file}.lock`;
  const place = describePlace();
  const text = `${place} ${process.pid} ${readStart(process.pid)} ${threadId} ${randomUUID()}`;
  const startedMs = performance.now();
  let [seen, sinceMs] = ['', startedMs];
  while (performance.now() - startedMs < GIVE_UP_MS) {
    if (create(lock, text)) return keep(lock, text);
    const owner = read(lock);
    if (owner !== null) {
      const nowMs = performance.now();
      const sign = `${owner.text} ${owner.renewedMs}`;
      if (sign !== seen) [seen, sinceMs] = [sign, nowMs];
      // Another kernel has another clock: only a change in this time shows that its owner lives.
      const silentMs = readKernel(owner.place) === readKernel(place) ? Date.now() - owner.renewedMs : nowMs - sinceMs;
      const liveliness = judgeOwner(owner, place, silentMs);
      if (liveliness === 'alive' || (liveliness === 'unknown' && nowMs - startedMs > 2 * STALE_MS)) {
        throw inUse(nameOwner(owner, place));
      }
      if (liveliness === 'dead' && takeAway(lock, owner.text)) continue;
    }
    await sleep(RETRY_MS, undefined, signal === undefined ? {} : { signal });
  }
  throw new PerfError(
    'PERF_ERR_STORE',
    `${lock} could not be taken: it comes back again and again. End the other processes that use it, remove it, and start again.`,
  );
}

function judgeOwner({ text, place, pid, start, thread }: Owner, here: string, silentMs: number) {
  const unlessSilent = silentMs < STALE_MS ? 'unknown' : 'dead';
  if (place !== here) return unlessSilent;
  const startNow = readStart(pid);
  // A kernel that hides other users' processes (`hidepid`) shows that it lives, and not since when.
  if (startNow === ALIVE && start !== ALIVE) return unlessSilent;
  if (startNow !== start) return 'dead';
  if (pid !== process.pid) return 'alive';
  if (thread === threadId) return heldLocks().has(text) ? 'alive' : 'dead';
  // Another thread of this process keeps its own list.
  return silentMs < STALE_MS ? 'alive' : 'dead';
}

const nameOwner = ({ pid, place }: Owner, here: string): string =>
  pid === process.pid && place === here ? `process ${pid}, this one, for another application` : `process ${pid}`;

const HELD: unique symbol = Symbol.for('nestjs-perf:held-locks');

/** Texts of this thread's locks. All copies of this package share the set. */
const heldLocks = (): Set<string> => ((globalThis as { [HELD]?: Set<string> })[HELD] ??= new Set());

/** Removes a lock without a living owner. False: another process was faster. */
function takeAway(lock: string, text: string): boolean {
  const taken = `${lock}.${randomUUID()}`;
  try {
    renameSync(lock, taken);
  } catch (error) {
    if (readCode(error) === 'ENOENT') return false;
    throw error;
  }
  try {
    if (readFileSync(taken, 'utf8') === text) return true;
    // It has a new owner since it was read, who gets it back.
    linkSync(taken, lock);
    return false;
  } catch (error) {
    if (readCode(error) === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(taken);
  }
}

/** Returns false when there is one. A full disk makes a file and refuses its text: none is left. */
function create(lock: string, text: string): boolean {
  let file: number;
  try {
    file = openSync(lock, 'wx', 0o600);
  } catch (error) {
    if (readCode(error) === 'EEXIST') return false;
    throw error;
  }
  try {
    writeFileSync(file, text);
    return true;
  } catch (error) {
    rmSync(lock);
    throw error;
  } finally {
    closeSync(file);
  }
}

function keep(lock: string, text: string): FileLock {
  heldLocks().add(text);
  const isHeld = (): boolean => read(lock)?.text === text;
  const beat = setInterval(() => {
    try {
      if (isHeld()) utimesSync(lock, new Date(), new Date());
      else clearInterval(beat);
    } catch {
      // The disk refuses; the next write of the owner reports it.
    }
  }, BEAT_MS).unref();
  return {
    get isHeld() {
      return isHeld();
    },
    release() {
      clearInterval(beat);
      heldLocks().delete(text);
      try {
        if (isHeld()) rmSync(lock);
      } catch {
        // It stays, and is taken over.
      }
    },
  };
}

/** Null when it is gone. @throws PERF_ERR_STORE for a link and for whatever else is no file: it is never followed. */
function read(lock: string): Owner | null {
  try {
    const found = lstatSync(lock);
    if (!found.isFile()) throw notOurs(lock);
    const text = readFileSync(lock, 'utf8');
    const [place = '', pid, start = '', thread] = text.split(' ');
    return { text, place, pid: Number(pid), start, thread: Number(thread), renewedMs: found.mtimeMs };
  } catch (error) {
    if (readCode(error) === 'ENOENT') return null;
    throw error;
  }
}

const notOurs = (path: string): PerfError =>
  new PerfError(
    'PERF_ERR_STORE',
    `${path} is not a file of this library's: a link, or something else that it has not made. Look at what it is, remove it, ` +
      'and start again.',
  );

const readCode = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

/** The scope in which a pid means one process: this host and PID namespace, since this boot. */
export function describePlace(): string {
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

/** A process whose start cannot be read. */
const ALIVE = 'alive';
const readKernel = (place: string): string | undefined => place.split('/')[1];

/** When a process was started: pids are used again, in containers even at each start. `-` when there is none. */
function readStart(pid: number): string {
  try {
    // Field 22 of /proc/<pid>/stat, in clock ticks since boot; the command in field 2 may contain spaces.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A zombie keeps its pid until its parent reaps it.
    return /[ZX]/.test(fields[0]!) ? '-' : (fields[19] ?? '-');
  } catch {
    return isAlive(pid) ? ALIVE : '-';
  }
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return readCode(error) === 'EPERM';
  }
}
