import { randomUUID } from 'node:crypto';
import { lstatSync } from 'node:fs';
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
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { describePlace } from '../../core/file-lock.js';
import { makeFolder } from '../../core/make-folder.js';
import { PerfError } from '../../core/perf.error.js';
import { reasonOf } from '../../core/reason.js';
import { within } from '../../core/within.js';

/** How often a process shows that it lives, milliseconds. */
const BEAT_MS = 2_000;
/** A process elsewhere that has shown nothing for so long is gone, milliseconds. */
export const SILENT_MS = 10_000;
/** The boot waits no longer for a disk that answers nothing, milliseconds. */
const OPEN_MS = 10_000;
const OWNER = 'owner';
/** The start of a process that lives, where no /proc has it. */
const UNREADABLE = 'alive';
const FOLDER = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
const FILE = /^(work|dead)-(\d+)\.ndjson$/;

export type FileKind = 'work' | 'dead';
export interface Adopted {
  readonly work: string[];
  readonly dead: string[];
}

type Report = (cause: string, message: string) => void;

/**
 * The folder of this process below `spillPath`, and the way in which what others have left comes into it: a folder whose
 * process is gone is renamed, so one process alone gets it. A process that only stood still finds its own gone.
 */
export class ProcessFolder {
  private path = '';
  private number = 0;
  private beat: NodeJS.Timeout | undefined;
  private beating = false;
  /** By folder of another place, its owner's last sign of life, and since when it is the last, monotonic milliseconds. */
  private readonly signs = new Map<string, { readonly sign: string; readonly sinceMs: number }>();
  private readonly place = describePlace();

  constructor(
    private readonly root: string,
    private readonly report: Report,
  ) {}

  /** Makes it, and the folders above it: at boot alone, synchronously. @throws PERF_ERR_STORE when the disk refuses */
  async open(): Promise<void> {
    try {
      makeFolder(this.root, 0o700);
      const found = lstatSync(this.root);
      if (!found.isDirectory()) throw new Error('it is a link or a file, where a folder is needed');
      const isMade = await within(OPEN_MS, () => this.make());
      if (!isMade) throw new Error(`the disk has not answered within ${OPEN_MS} ms`);
    } catch (error) {
      throw unusable(this.root, error);
    }
  }

  private async make(): Promise<void> {
    const path = join(this.root, randomUUID());
    const draft = `${path}.new`;
    await mkdir(this.root, 0o700).catch(ignoreExisting);
    await mkdir(draft, 0o700);
    const start = (await readStart(process.pid)) ?? '-';
    const owner = `${this.place} ${process.pid} ${start} ${threadId}`;
    await writeFile(join(draft, OWNER), owner, { mode: 0o600, flag: 'wx' });
    // Others see it once it has its owner.
    await rename(draft, path);
    await syncFolder(this.root);
    this.path = path;
    clearInterval(this.beat);
    this.beat = setInterval(() => void this.show(), BEAT_MS).unref();
  }

  private async show(): Promise<void> {
    if (this.beating) return;
    this.beating = true;
    const now = new Date();
    // The next write finds out, and reports it.
    await utimes(join(this.path, OWNER), now, now).catch(() => {});
    this.beating = false;
  }

  /** Whether what was written is still ours: another process may have taken the folder over while this one stood still. */
  async isOurs(): Promise<boolean> {
    return await stat(join(this.path, OWNER)).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return false;
        throw error;
      },
    );
  }

  /** Another folder in the place of one that was taken over. */
  async renew(): Promise<void> {
    await this.make();
    const cause = `another process has taken over what this one had in ${this.root}, while it stood still`;
    this.report(cause, `${cause}: nothing is lost, and some of it may run twice.`);
  }

  nextFile(kind: FileKind): string {
    this.number += 1;
    return join(this.path, `${kind}-${String(this.number).padStart(6, '0')}.ndjson`);
  }

  /** A new file is there after a power cut only when its folder is on disk as well. */
  async sync(): Promise<void> {
    await syncFolder(this.path);
  }

  /** Puts a damaged file where nobody sends or removes it. */
  async setAside(file: string): Promise<string> {
    const aside = join(this.root, `damaged-${randomUUID()}.ndjson`);
    await rename(file, aside);
    return aside;
  }

  /** Moves the files of processes that are gone into this folder. Reads none of them. */
  async adopt(): Promise<Adopted> {
    const adopted: Adopted = { work: [], dead: [] };
    const names = await readdir(this.root);
    for (const gone of this.signs.keys()) if (!names.includes(gone)) this.signs.delete(gone);
    for (const name of names) {
      const path = join(this.root, name);
      if (!FOLDER.test(name) || path === this.path || !(await this.isGone(name, path))) continue;
      const mine = join(this.path, name);
      try {
        await rename(path, mine);
      } catch (error) {
        // Another process was sooner.
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
        throw error;
      }
      await this.takeFiles(mine, adopted);
    }
    if (adopted.work.length + adopted.dead.length > 0) await Promise.all([this.sync(), syncFolder(this.root)]);
    return adopted;
  }

  /** One that has taken others over may have ended in the middle of it. */
  private async takeFiles(folder: string, adopted: Adopted): Promise<void> {
    for (const name of (await readdir(folder)).toSorted()) {
      const path = join(folder, name);
      const kind = FILE.exec(name)?.[1] as FileKind | undefined;
      if (name === OWNER) await unlink(path);
      else if (kind !== undefined) {
        const file = this.nextFile(kind);
        await rename(path, file);
        adopted[kind].push(file);
      } else if ((await lstat(path)).isDirectory()) await this.takeFiles(path, adopted);
    }
    await rmdir(folder).catch((error: Error) => {
      const cause = `${folder} holds what this library has not made`;
      this.report(cause, `${cause}, and stays: ${error.message}.`);
    });
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
    const file = join(path, OWNER);
    const found = await lstat(file).catch(() => null);
    // Its process has closed, and left what no store had taken.
    if (found === null) return true;
    if (!found.isFile()) return false;
    const [place = '', pid = '', start = ''] = (await readFile(file, 'utf8').catch(() => '')).split(' ');
    if (place === this.place) {
      const startNow = await readStart(Number(pid));
      if (startNow === null || startNow !== UNREADABLE) return startNow !== start;
    }
    const sign = `${found.mtimeMs}`;
    const nowMs = performance.now();
    const last = this.signs.get(name);
    // Another kernel has another clock: only what changes while this process looks shows that its owner lives.
    if (last?.sign !== sign) this.signs.set(name, { sign, sinceMs: nowMs });
    return last?.sign === sign && nowMs - last.sinceMs >= SILENT_MS;
  }

  /** Leaves what is in it to the next process; nothing, when it is empty. */
  async release(): Promise<void> {
    clearInterval(this.beat);
    if (this.path === '') return;
    await unlink(join(this.path, OWNER)).catch(() => {});
    // It stays where something is in it.
    await rmdir(this.path).catch(() => {});
  }
}

/** When a process was started, in clock ticks since the boot: pids are used again. Null when there is none. */
async function readStart(pid: number): Promise<string | null> {
  try {
    // Field 22 of /proc/<pid>/stat; the command in field 2 may hold spaces.
    const text = await readFile(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    // A process that has ended keeps its pid until its parent asks for it.
    return /[ZX]/.test(fields[0]!) ? null : (fields[19] ?? null);
  } catch {
    return isAlive(pid) ? UNREADABLE : null;
  }
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function unusable(path: string, error: unknown): PerfError {
  return new PerfError(
    'PERF_ERR_STORE',
    `\`spillPath\` "${path}" cannot be used: ${reasonOf(error)}. Name a folder that this process may write to; ` +
      'with a read-only root file system, mount a volume there.',
    { cause: error },
  );
}
