import { mkdir, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { DurableJournal, JournalEntry } from './durable-store.js';
import { lockSpill } from './spill-lock.js';
import { SpillSegment } from './spill-segment.js';

const ROTATE_AT_BYTES = 8 * 1024 * 1024;

interface Append {
  readonly entry: JournalEntry;
  readonly done: (written: boolean) => void;
}

interface Take {
  readonly limit: number;
  readonly done: (entries: JournalEntry[]) => void;
}

/**
 * An append-only file beside the buffer in memory. Entries that arrive together share one write and one fdatasync.
 * The file is emptied when everything in it is struck off; when it has grown to 8 MiB it moves aside as `<file>.<n>`
 * and is deleted once its last entry is struck off.
 */
export class SpillFile implements DurableJournal {
  private readonly segments = new Map<string, SpillSegment>();
  private older: SpillSegment[] = [];
  private active: SpillSegment | null = null;
  private file = '';
  private nextNumber = 1;
  private appends: Append[] = [];
  private takes: Take[] = [];
  private writing: Promise<void> | null = null;
  /** Something came that {@link write} may not have seen yet. */
  private unseen = false;
  private unlock: () => void = () => {};
  private report: (cause: string, message: string) => void = () => {};

  /** @param path a file, or a folder in which `deferred.ndjson` is made */
  constructor(private readonly path: string) {}

  get parked(): number {
    return this.older.reduce((sum, segment) => sum + segment.parked, this.active?.parked ?? 0);
  }

  async open(report: (cause: string, message: string) => void): Promise<number> {
    this.report = report;
    this.file = await fileAt(resolve(this.path));
    this.unlock = lockSpill(this.file);
    let damagedLines = 0;
    for (const number of await numbersBeside(this.file)) {
      this.nextNumber = number + 1;
      damagedLines += await this.reopen(`${this.file}.${number}`);
    }
    const { segment, damagedLines: damaged } = await SpillSegment.open(this.file);
    this.active = segment;
    damagedLines += damaged;
    if (segment.outstanding > 0) await this.rotate();
    else if (segment.bytes > 0) await segment.clear();
    if (damagedLines > 0) {
      const cause = 'spill file holds damaged lines';
      report(cause, `${cause}: ${damagedLines} were skipped. Torn by a crash, their responses were not sent.`);
    }
    return this.parked;
  }

  append(entry: JournalEntry): Promise<boolean> {
    return new Promise((done) => {
      this.appends.push({ entry, done });
      this.wake();
    });
  }

  strike(ids: readonly string[]): void {
    for (const id of ids) {
      this.segments.get(id)?.strike(id);
      this.segments.delete(id);
    }
    this.wake();
  }

  park(id: string): void {
    const segment = this.segments.get(id);
    if (segment === undefined) return;
    this.segments.delete(id);
    segment.parked += 1;
  }

  takeParked(limit: number): Promise<JournalEntry[]> {
    return new Promise((done) => {
      this.takes.push({ limit, done });
      this.wake();
    });
  }

  async close(): Promise<void> {
    while (this.writing !== null) await this.writing;
    for (const segment of [...this.older, this.active]) {
      await segment?.writeStrikes();
      await segment?.close();
    }
    this.unlock();
  }

  private wake(): void {
    this.unseen = true;
    this.writing ??= this.write();
  }

  /** The only one to touch the files: appends first, since responses wait for them. */
  private async write(): Promise<void> {
    while (this.unseen) {
      // What other requests append in this turn joins the same write.
      await new Promise<void>((next) => setImmediate(next));
      this.unseen = false;
      while (this.appends.length > 0) await this.writeAppends();
      // Reading takes its turn with writing, else an entry that is half on disk would pass for a parked one.
      for (const { limit, done } of this.takes.splice(0)) done(await this.readParked(limit));
      try {
        await this.writeStrikes();
      } catch (error) {
        this.failed('strike off', error);
      }
    }
    this.writing = null;
  }

  private async writeAppends(): Promise<void> {
    const appends = this.appends;
    this.appends = [];
    const active = this.active;
    if (active === null) return;
    try {
      await active.append(appends.map(({ entry }) => SpillSegment.line(entry)));
      active.outstanding += appends.length;
      for (const { entry } of appends) this.segments.set(entry.id, active);
      for (const { done } of appends) done(true);
      if (active.bytes >= ROTATE_AT_BYTES) await this.rotate();
    } catch (error) {
      this.failed('write', error);
      for (const { done } of appends) done(false);
    }
  }

  private async readParked(limit: number): Promise<JournalEntry[]> {
    const segment = [...this.older, this.active].find((candidate) => candidate !== null && candidate.parked > 0);
    if (segment === undefined || segment === null || limit < 1) return [];
    try {
      const { entries } = await segment.read();
      const taken = entries.filter(({ id }) => !this.segments.has(id)).slice(0, limit);
      for (const { id } of taken) this.segments.set(id, segment);
      segment.parked = Math.max(0, segment.parked - taken.length);
      return taken;
    } catch (error) {
      this.failed('read', error);
      return [];
    }
  }

  private async writeStrikes(): Promise<void> {
    const finished = this.older.filter(({ outstanding }) => outstanding === 0);
    this.older = this.older.filter(({ outstanding }) => outstanding > 0);
    for (const segment of finished) await segment.remove();
    for (const segment of this.older) await segment.writeStrikes();
    const active = this.active;
    if (active === null) return;
    if (active.outstanding > 0 || this.appends.length > 0) await active.writeStrikes();
    else if (active.bytes > 0) await active.clear();
  }

  private async rotate(): Promise<void> {
    if (this.active === null) return;
    await this.active.moveTo(`${this.file}.${this.nextNumber++}`);
    this.older.push(this.active);
    this.active = (await SpillSegment.open(this.file)).segment;
  }

  private async reopen(path: string): Promise<number> {
    const { segment, damagedLines } = await SpillSegment.open(path);
    if (segment.outstanding === 0) await segment.remove();
    else this.older.push(segment);
    return damagedLines;
  }

  private failed(step: string, error: unknown): void {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    const cause = `spill file: could not ${step}: ${reason}`;
    this.report(cause, `${cause}. Durable work is kept in memory only until the disk takes it again.`);
  }
}

async function fileAt(path: string): Promise<string> {
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory() === true) return join(path, 'deferred.ndjson');
  await mkdir(dirname(path), { recursive: true });
  return path;
}

/** The numbers of the files that earlier rotations have moved aside, ascending. */
async function numbersBeside(file: string): Promise<number[]> {
  const prefix = `${basename(file)}.`;
  return (await readdir(dirname(file)))
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map((name) => Number(name.slice(prefix.length)))
    .sort((a, b) => a - b);
}
