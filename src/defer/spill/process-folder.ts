import { randomUUID } from 'node:crypto';
import {
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { describePlace, isAlive } from './process-place.js';
import { PerfError } from '../../core/perf.error.js';
import { describeReason } from '../../core/reason.js';
import { inRootContext } from '../../core/root-context.js';
import { within } from '../../core/within.js';

/** How often a process touches its owner file, milliseconds. */
const BEAT_MS = 2_000;
/** A process whose owner file has not changed for so long has ended, milliseconds. */
const SILENT_MS = 10_000;
/** How often a process looks for files of processes that have ended, milliseconds. */
const ADOPT_MS = 5_000;
/** How long the boot waits for the disk, milliseconds. */
const OPEN_MS = 10_000;
/** Names the process to which the folder belongs; missing when that has closed in order. */
const OWNER = 'owner';
const FOLDER = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
export type FileKind = 'work' | 'dead';
const FILE = /^(work|dead)-\d+\.ndjson$/;
/** A disk that is full when the application boots has room again later. */
const FULL = /^(ENOSPC|EDQUOT)$/;

/** The folder of this process below `spillPath`. It adopts files of processes that have ended by renaming: only one process can get each. */
export class ProcessFolder {
  private path = '';
  private isClosing = false;
  private files = 0;
  private beat: NodeJS.Timeout | undefined;
  private adopting: NodeJS.Timeout | undefined;
  /** By folder: the time on its owner file, and since when this process has read that time, monotonic milliseconds. */
  private readonly signs = new Map<string, { readonly touchedMs: number; readonly sinceMs: number }>();
  /** Pids of the same host mean the same processes. */
  private readonly host = describePlace();
  private readonly root: string;
  /** The last step on the disk. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    root: string,
    private readonly report: (cause: string, message: string) => void,
  ) {
    this.root = resolve(root);
  }

  /**
   * Runs one step on the disk after the other: side by side, a few steps on a disk that hangs would take all of Node's four threads, and
   * with them every DNS lookup and every compression of the process. A step must not wait for another one.
   */
  inOrder<T>(step: () => Promise<T>): Promise<T> {
    const turn = this.last.then(step);
    this.last = turn.catch(() => {});
    return turn;
  }

  /** Makes it, and at the boot alone the folders above it: a volume may be gone later. @throws PERF_ERR_STORE when the disk refuses, unless it is full: later steps try again */
  async open(): Promise<void> {
    const make = async (): Promise<void> => {
      await mkdir(this.root, { recursive: true, mode: 0o700 });
      if (!(await lstat(this.root)).isDirectory()) throw new Error('it is a link or a file, where a folder is needed');
      await this.make();
    };
    try {
      const isMade = await within(OPEN_MS, () => this.inOrder(make));
      if (!isMade) throw new Error(`the disk has not answered within ${OPEN_MS} ms`);
    } catch (error) {
      if (FULL.test(String((error as NodeJS.ErrnoException).code))) {
        const cause = `the disk of \`spillPath\` "${this.root}" is full`;
        return this.report(cause, `${cause}: durable work is in memory only until it has room again.`);
      }
      throw new PerfError(
        'PERF_ERR_STORE',
        `\`spillPath\` "${this.root}" cannot be used: ${describeReason(error)}. Name a folder that this process may write to; ` +
          'with a read-only root file system, mount a volume there.',
        { cause: error },
      );
    }
  }

  private async make(): Promise<void> {
    const path = join(this.root, randomUUID());
    await mkdir(this.root, 0o700).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    // Renamed once it has its owner file: a folder without one counts as left behind.
    const unowned = `${path}.new`;
    try {
      await mkdir(unowned, 0o700);
      await writeFile(join(unowned, OWNER), `${this.host} ${process.pid}`, { mode: 0o600, flag: 'wx' });
      await rename(unowned, path);
    } catch (error) {
      await rm(unowned, { recursive: true, force: true }).catch(() => {});
      throw error;
    }
    await syncFolder(this.root);
    this.path = path;
    clearInterval(this.beat);
    let isTouching = false;
    const touchOwner = async (): Promise<void> => {
      // One at a time when the disk hangs. An error is not lost: the next write meets and reports it.
      if (isTouching) return;
      isTouching = true;
      await this.inOrder(() => utimes(join(path, OWNER), new Date(), new Date())).catch(() => {});
      isTouching = false;
    };
    this.beat = inRootContext(() => setInterval(() => void touchOwner(), BEAT_MS)).unref();
  }

  /** Whether a file still belongs to this process. After a long suspension another may have taken the folder over: then a new one is made. */
  async owns(file: string): Promise<boolean> {
    if (this.path === '') await this.make();
    if (dirname(file) !== this.path) return false;
    try {
      await stat(join(this.path, OWNER));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    await this.make();
    const cause = `another process has taken over what this one had in ${this.root}, while it was suspended`;
    this.report(cause, `${cause}: nothing is lost, and some of it may run twice.`);
    return false;
  }

  nextFile(kind: FileKind): string {
    this.files += 1;
    return join(this.path, `${kind}-${String(this.files).padStart(6, '0')}.ndjson`);
  }

  /** A new file survives a power cut only when its folder is synced as well. */
  sync(): Promise<void> {
    return syncFolder(this.path);
  }

  /** Adopts now and from time to time. Never rejects. */
  async keepAdopting(onAdopted: (files: readonly string[]) => void): Promise<void> {
    const adopted: string[] = [];
    await this.adopt(adopted).catch((error: unknown) => {
      const cause = `spill: could not take over files of processes that have ended: ${describeReason(error)}`;
      this.report(cause, `${cause}. They stay there, and it is tried again.`);
    });
    // Files that were moved before an error are adopted all the same.
    onAdopted(adopted);
    if (this.isClosing) return;
    this.adopting = inRootContext(() => setTimeout(() => void this.keepAdopting(onAdopted), ADOPT_MS)).unref();
  }

  /** Moves files of processes that have ended into this folder. Reads none of them. */
  private async adopt(adopted: string[]): Promise<void> {
    const names = await this.inOrder(async () => {
      if (this.path === '') await this.make();
      return readdir(this.root);
    });
    for (const gone of this.signs.keys()) if (!names.includes(gone)) this.signs.delete(gone);
    for (const name of names) {
      const path = join(this.root, name);
      const files = FOLDER.test(name) ? await this.inOrder(() => this.claim(name, path)) : null;
      // One step for each, so that no response waits for all of them.
      for (const file of files ?? []) await this.inOrder(() => this.move(join(path, file), adopted));
      if (files !== null) await this.inOrder(() => rmdir(path).catch(() => {}));
    }
    if (adopted.length > 0) await this.inOrder(() => Promise.all([this.sync(), syncFolder(this.root)]));
  }

  /** The files of a folder whose process has ended; else null. */
  private async claim(name: string, path: string): Promise<string[] | null> {
    if (path === this.path || !(await this.isGone(name, path))) return null;
    // A process that lives after all misses its owner file at its next write, and makes a new folder.
    await unlink(join(path, OWNER)).catch(() => {});
    const files = (await readdir(path).catch(ignoreMissing)) ?? [];
    return files.filter((file) => FILE.test(file)).toSorted();
  }

  private async move(file: string, adopted: string[]): Promise<void> {
    const mine = this.nextFile('work');
    // It may be gone: another process adopts it too.
    const isMoved = await rename(file, mine).then(() => true, ignoreMissing);
    if (isMoved === true) adopted.push(mine);
  }

  private async isGone(name: string, path: string): Promise<boolean> {
    const folder = await lstat(path).catch(() => null);
    if (folder === null || !folder.isDirectory()) return false;
    // The group may write: Kubernetes gives it that right with `fsGroup`.
    if (folder.uid !== (process.getuid?.() ?? folder.uid) || (folder.mode & 0o002) !== 0) {
      const cause = `${path} belongs to another user, or everybody may write to it`;
      this.report(cause, `${cause}: what is in it is not sent. Look at it, and remove it.`);
      return false;
    }
    const owner = join(path, OWNER);
    const found = await lstat(owner).catch(() => null);
    // Closed in order, with work that no store had taken.
    if (found === null) return true;
    if (!found.isFile()) return false;
    const [host, pid] = (await readFile(owner, 'utf8').catch(() => '')).split(' ');
    if (host === this.host && !isAlive(Number(pid))) return true;
    // A pid may be reused, and another host's clock may differ: only a change of the time proves that the owner lives.
    const last = this.signs.get(name);
    const nowMs = performance.now();
    if (last?.touchedMs === found.mtimeMs) return nowMs - last.sinceMs >= SILENT_MS;
    this.signs.set(name, { touchedMs: found.mtimeMs, sinceMs: nowMs });
    return false;
  }

  stopAdopting(): void {
    this.isClosing = true;
    clearTimeout(this.adopting);
  }

  /** Removes the folder, or its owner file alone when it has files: any process may adopt them then. */
  async release(): Promise<void> {
    this.stopAdopting();
    clearInterval(this.beat);
    if (this.path === '') return;
    await this.inOrder(async () => {
      await unlink(join(this.path, OWNER)).catch(() => {});
      await rmdir(this.path).catch(() => {});
    });
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
