import { randomUUID } from 'node:crypto';
import { lstatSync, mkdirSync } from 'node:fs';
import {
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rmdir,
  stat,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { describePlace, isAlive } from '../../core/process-place.js';
import { PerfError } from '../../core/perf.error.js';
import { describeReason } from '../../core/reason.js';
import { inRootContext } from '../../core/root-context.js';
import { within } from '../../core/within.js';

/** How often a process shows that it lives, milliseconds. */
const BEAT_MS = 2_000;
/** A process that has shown nothing for so long is gone, milliseconds. */
const SILENT_MS = 10_000;
/** How often a process adopts what those that are gone have left, milliseconds. */
const ADOPT_MS = 5_000;
/** The boot waits no longer for a disk that answers nothing, milliseconds. */
const OPEN_MS = 10_000;
const OWNER = 'owner';
const FOLDER = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
/** Work that is on its way, and dead letters. */
export type FileKind = 'work' | 'dead';
const FILE = /^(work|dead)-\d+\.ndjson$/;

/** The folder of this process below `spillPath`. Files of a process that is gone are renamed into it, so one process alone gets each. */
export class ProcessFolder {
  private path = '';
  private isClosing = false;
  private files = 0;
  private beat: NodeJS.Timeout | undefined;
  private adopting: NodeJS.Timeout | undefined;
  /** By folder, its owner's last sign of life, and since when it is the last, monotonic milliseconds. */
  private readonly signs = new Map<string, { readonly sign: number; readonly sinceMs: number }>();
  private readonly place = describePlace();
  private readonly root: string;

  constructor(
    root: string,
    private readonly report: (cause: string, message: string) => void,
  ) {
    this.root = resolve(root);
  }

  /** Makes it, and the folders above it: at boot alone, synchronously. Reads no file. @throws PERF_ERR_STORE when the disk refuses */
  async open(): Promise<void> {
    try {
      mkdirSync(this.root, { recursive: true, mode: 0o700 });
      if (!lstatSync(this.root).isDirectory()) throw new Error('it is a link or a file, where a folder is needed');
      const isMade = await within(OPEN_MS, () => this.make());
      if (!isMade) throw new Error(`the disk has not answered within ${OPEN_MS} ms`);
    } catch (error) {
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
    // Others see it once it has its owner.
    await mkdir(`${path}.new`, 0o700);
    await writeFile(join(`${path}.new`, OWNER), `${this.place} ${process.pid}`, { mode: 0o600, flag: 'wx' });
    await rename(`${path}.new`, path);
    await syncFolder(this.root);
    this.path = path;
    clearInterval(this.beat);
    let isShowing = false;
    const show = async (): Promise<void> => {
      // One at a time where the disk hangs. The next write finds out, and reports it.
      if (isShowing) return;
      isShowing = true;
      await utimes(join(path, OWNER), new Date(), new Date()).catch(() => {});
      isShowing = false;
    };
    this.beat = inRootContext(() => setInterval(() => void show(), BEAT_MS)).unref();
  }

  /** Whether a file is still in the folder of this process: another process may have taken it over; then there is another folder. */
  async owns(file: string): Promise<boolean> {
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

  /** A new file is there after a power cut only when its folder is on disk as well. */
  sync(): Promise<void> {
    return syncFolder(this.path);
  }

  /** Adopts now and from time to time. Never rejects. */
  async keepAdopting(onAdopted: (files: readonly string[]) => void): Promise<void> {
    const adopted: string[] = [];
    await this.adopt(adopted).catch((error: unknown) => {
      const cause = `spill: could not find what other processes have left: ${describeReason(error)}`;
      this.report(cause, `${cause}. It stays there.`);
    });
    // Also what was moved before the disk refused.
    onAdopted(adopted);
    if (this.isClosing) return;
    this.adopting = inRootContext(() => setTimeout(() => void this.keepAdopting(onAdopted), ADOPT_MS)).unref();
  }

  /** Moves the files of processes that are gone into this folder. Reads none of them. */
  private async adopt(adopted: string[]): Promise<void> {
    const names = await readdir(this.root);
    for (const gone of this.signs.keys()) if (!names.includes(gone)) this.signs.delete(gone);
    for (const name of names) {
      const path = join(this.root, name);
      if (!FOLDER.test(name) || path === this.path || !(await this.isGone(name, path))) continue;
      // Its process, should it live after all, finds that out at its next write.
      await unlink(join(path, OWNER)).catch(() => {});
      for (const file of ((await readdir(path).catch(ignoreMissing)) ?? []).toSorted()) {
        if (!FILE.test(file)) continue;
        const mine = this.nextFile('work');
        // Another process may be sooner, with any of the files.
        const isMoved = await rename(join(path, file), mine).then(() => true, ignoreMissing);
        if (isMoved === true) adopted.push(mine);
      }
      await rmdir(path).catch(() => {});
    }
    if (adopted.length > 0) await Promise.all([this.sync(), syncFolder(this.root)]);
  }

  private async isGone(name: string, path: string): Promise<boolean> {
    const folder = await lstat(path).catch(() => null);
    if (folder === null || !folder.isDirectory()) return false;
    // Write access of the group is allowed: a volume's `fsGroup` may write to all of it.
    if (folder.uid !== (process.getuid?.() ?? folder.uid) || (folder.mode & 0o002) !== 0) {
      const cause = `${path} belongs to another user, or everybody may write to it`;
      this.report(cause, `${cause}: what is in it is not sent. Look at it, and remove it.`);
      return false;
    }
    const owner = join(path, OWNER);
    const found = await lstat(owner).catch(() => null);
    // Its process has closed, and left what no store had taken.
    if (found === null) return true;
    if (!found.isFile()) return false;
    const [place, pid] = (await readFile(owner, 'utf8').catch(() => '')).split(' ');
    if (place === this.place && !isAlive(Number(pid))) return true;
    // Another process may have the pid by now, and another kernel has another clock: only what changes shows that its owner lives.
    const last = this.signs.get(name);
    const nowMs = performance.now();
    if (last?.sign === found.mtimeMs) return nowMs - last.sinceMs >= SILENT_MS;
    this.signs.set(name, { sign: found.mtimeMs, sinceMs: nowMs });
    return false;
  }

  /** The application closes: no more is adopted. */
  stopAdopting(): void {
    this.isClosing = true;
    clearTimeout(this.adopting);
  }

  /** Leaves what is in it to the next process; nothing, when it is empty. */
  async release(): Promise<void> {
    this.stopAdopting();
    clearInterval(this.beat);
    if (this.path === '') return;
    await unlink(join(this.path, OWNER)).catch(() => {});
    await rmdir(this.path).catch(() => {});
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
