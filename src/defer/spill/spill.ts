import { open, readdir, rename, stat } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { lockFile, type FileLock } from '../../core/file-lock.js';
import { makeFolder } from '../../core/make-folder.js';
import { PerfError } from '../../core/perf.error.js';
import { reasonOf } from '../../core/reason.js';
import type { DurableEntry } from '../durable/durable-entry.js';
import { RejectFile, type RejectedEntry } from './reject-file.js';
import { Segment, type Place, type TakenBack } from './segment.js';

const SEGMENT_BYTES = 8 * 1024 * 1024;
/** A disk that has refused is asked again so much later, milliseconds. */
const ASK_AGAIN_MS = 1_000;

type Report = (cause: string, message: string) => void;

/**
 * Durable work on disk until its store has it: numbered segments `<file>.<n>`, each deleted whole once all of its entries
 * are struck off. Entries that arrive together share one write and one fdatasync.
 */
export class Spill {
  private segments: Segment[] = [];
  private active: Segment | null = null;
  private file = '';
  private nextNumber = 1;
  private rejects = new RejectFile('');
  private joining: { readonly entries: DurableEntry[]; readonly written: Promise<Place[]> } | null = null;
  private sweeping = false;
  /** When the disk has last refused an entry, monotonic milliseconds; null since it has taken one. */
  private refusedMs: number | null = null;
  private asking = false;
  private closed = false;
  private last: Promise<unknown> = Promise.resolve();
  private lock: FileLock | null = null;
  private report: Report = () => {};

  /** `path`: of a file, or of a folder in which `deferred.ndjson` is made. */
  constructor(private readonly options: { readonly path: string; readonly maxBytes: number }) {}

  /** How many entries are neither stored nor discarded. */
  get entries(): number {
    return this.segments.reduce((sum, { outstanding }) => sum + outstanding, 0);
  }

  get parked(): number {
    return this.segments.reduce((sum, { parked }) => sum + parked, 0);
  }

  /**
   * Resolves with how many entries an earlier process has left behind.
   * @throws PERF_ERR_STORE when a living process uses the same path, or the disk refuses it
   */
  async open(report: Report): Promise<number> {
    this.report = report;
    try {
      await this.takeOver();
    } catch (error) {
      await this.letGo().catch(() => {});
      throw error instanceof PerfError ? error : unusable(this.options.path, error);
    }
    return this.parked;
  }

  private async takeOver(): Promise<void> {
    this.file = await fileAt(resolve(this.options.path));
    this.lock = await lockFile(this.file, (owner) => inUse(this.file, owner));
    this.rejects = new RejectFile(`${this.file}.rejects`);
    for (const { path, number, isAside } of await segmentsOf(this.file)) {
      this.nextNumber = number + 1;
      if (isAside) continue;
      const segment = await Segment.reopen(path);
      this.segments.push(segment);
      this.reportDamage(path, segment.damagedLines);
    }
    await this.removeFinished();
  }

  /** Resolves when the entry is on disk, with its place; null when the disk refuses it, which is reported, or it is closed. */
  async append(entry: DurableEntry): Promise<Place | null> {
    if (this.closed) return null;
    const { entries, written } = (this.joining ??= this.newWrite());
    const at = entries.push(entry) - 1;
    return (await written)[at] ?? null;
  }

  /** Whether an entry would be written, as far as is known. Asks the disk again by itself, for as long as somebody asks here. */
  takesEntries(): boolean {
    if (this.heldBytes >= this.options.maxBytes) return false;
    if (this.refusedMs === null) return true;
    if (!this.asking && performance.now() - this.refusedMs >= ASK_AGAIN_MS) void this.askAgain();
    return false;
  }

  private async askAgain(): Promise<void> {
    this.asking = true;
    await this.heed(this.onDisk('write', async () => (await this.writable()).probe()));
    this.asking = false;
  }

  /** Learns from a write whether the disk takes entries. Never rejects. */
  private async heed(written: Promise<unknown>): Promise<void> {
    this.refusedMs = await written.then(
      () => null,
      () => performance.now(),
    );
  }

  private get heldBytes(): number {
    return this.segments.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  private newWrite() {
    const entries: DurableEntry[] = [];
    const written = this.onDisk('write', async () => {
      // What other requests append in this turn joins the same write.
      await nextTurn();
      this.joining = null;
      return (await this.writable()).append(entries);
    });
    void this.heed(written);
    return { entries, written: written.catch((): Place[] => []) };
  }

  /** Forgets entries: they are stored, or need not run. */
  strike(places: readonly Place[]): void {
    for (const { segment, offset } of places) segment.strike(offset);
    if (this.sweeping) return;
    this.sweeping = true;
    void this.sweep();
  }

  park({ segment, offset }: Place): void {
    segment.park(offset);
  }

  /** Brings up to `limit` parked entries back, oldest first. Rejects when the disk cannot be read: they stay parked. */
  takeParked(limit: number): Promise<TakenBack> {
    return this.onDisk('read', async () => {
      const segment = this.segments.find(({ parked }) => parked > 0);
      if (segment === undefined) return { taken: [], damagedLines: 0 };
      const back = await segment.takeParked(limit);
      this.reportDamage(segment.path, back.damagedLines);
      // Where nothing else is left in it, it is put aside now.
      if (back.damagedLines > 0) this.strike([]);
      return back;
    });
  }

  private reportDamage(path: string, lines: number): void {
    if (lines === 0) return;
    const cause = `the spill file ${path} holds damaged lines`;
    this.report(cause, `${cause}: ${lines} were skipped, the others are sent. It is kept as ${path}.damaged.`);
  }

  /** Strikes an entry off that the store will never take, once it is among the rejects. Else it is sent at the next start. */
  async reject(entry: DurableEntry, place: Place, error: string): Promise<void> {
    const rejected = { ...entry, error, rejectedAt: Date.now() };
    const writing = this.onDisk('write the rejects', () => this.rejects.add(rejected));
    await writing.then(
      () => this.strike([place]),
      () => {},
    );
  }

  rejected(): Promise<RejectedEntry[]> {
    return this.onDisk('read the rejects', () => this.rejects.read());
  }

  forgetRejected(ids: ReadonlySet<string>): Promise<void> {
    return this.onDisk('write the rejects', () => this.rejects.remove(ids));
  }

  async close(): Promise<void> {
    this.closed = true;
    // Who was rejected last is struck off then.
    await this.last;
    await this.sweep();
    await this.letGo();
  }

  private async letGo(): Promise<void> {
    try {
      for (const segment of this.segments.splice(0)) await segment.close();
    } finally {
      this.lock?.release();
      this.lock = null;
    }
  }

  /** One thing after the other touches the files. What the disk refuses is reported. */
  private onDisk<T>(step: string, work: () => Promise<T>): Promise<T> {
    const turn = this.last.then(work);
    this.last = turn.catch((error: NodeJS.ErrnoException) => {
      const cause = `spill file: could not ${step}: ${error.code ?? reasonOf(error)}`;
      this.report(cause, `${cause}. New durable work is in memory only until it can; what is on disk stays there.`);
    });
    return turn;
  }

  /** Writes down what was struck off, and removes what is done with. */
  private async sweep(): Promise<void> {
    const sweeping = this.onDisk('strike off', async () => {
      await nextTurn();
      this.sweeping = false;
      // First what needs no room: the disk may be full of it.
      await this.removeFinished();
      for (const segment of this.segments) await segment.writeStrikes();
    });
    await sweeping.catch(() => {});
  }

  /** The segment that is written to; a new one when there is none, when it is full, and behind a torn end. */
  private async writable(): Promise<Segment> {
    const { active } = this;
    if (this.lock?.isLost === true) throw new Error('another process has taken it over, while this one stood still');
    const { heldBytes } = this;
    if (heldBytes >= this.options.maxBytes) throw new Error(`it holds ${heldBytes} bytes already (spillMaxBytes)`);
    if (active !== null && !active.torn && active.bytes < SEGMENT_BYTES) return active;
    const segment = await Segment.create(`${this.file}.${this.nextNumber}`);
    this.nextNumber += 1;
    this.segments.push(segment);
    this.active = segment;
    await syncFolder(dirname(this.file));
    return segment;
  }

  /** The active one goes as well: the next entry gets a file of its own. */
  private async removeFinished(): Promise<void> {
    for (const segment of this.segments.filter(({ outstanding }) => outstanding === 0)) {
      if (segment === this.active && segment.bytes < SEGMENT_BYTES && this.joining !== null) continue;
      this.segments = this.segments.filter((other) => other !== segment);
      if (this.active === segment) this.active = null;
      if (segment.damagedLines === 0) await segment.remove();
      else {
        await segment.close();
        await rename(segment.path, `${segment.path}.damaged`);
      }
    }
  }
}

async function fileAt(path: string): Promise<string> {
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory() === true) return join(path, 'deferred.ndjson');
  makeFolder(dirname(path));
  return path;
}

interface Left {
  readonly path: string;
  readonly number: number;
  /** Damaged, and only kept: its number is not given again. */
  readonly isAside: boolean;
}

/** Segments that an earlier process has left, oldest first; 0.1.0 wrote to `<file>` itself, last. */
async function segmentsOf(file: string): Promise<Left[]> {
  const name = `${basename(file)}.`;
  const segments = (await readdir(dirname(file)))
    .filter((other) => other.startsWith(name) && /^\d+(\.damaged)?$/.test(other.slice(name.length)))
    .map((other) => {
      const path = join(dirname(file), other);
      return { path, number: parseInt(other.slice(name.length), 10), isAside: other.endsWith('.damaged') };
    })
    .toSorted((a, b) => a.number - b.number);
  const found = await stat(file).catch(() => null);
  if (found?.isFile() === true) segments.push({ path: file, number: segments.at(-1)?.number ?? 0, isAside: false });
  return segments;
}

/** A new file is there after a power cut only when its folder is on disk as well. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

function inUse(file: string, owner: string): PerfError {
  return new PerfError(
    'PERF_ERR_STORE',
    `\`spillPath\` is in use by ${owner}: ${file}. Each application needs a file of its own. ` +
      'Give every worker of a cluster, and every application of a process, its own path, the same one at each start, and end the old ' +
      'process before the new one starts.',
  );
}

function unusable(path: string, error: unknown): PerfError {
  return new PerfError(
    'PERF_ERR_STORE',
    `\`spillPath\` "${path}" cannot be used: ${reasonOf(error)}. Name a path in a folder that this process may write to; ` +
      'with a read-only root file system, mount a volume there.',
    { cause: error },
  );
}
