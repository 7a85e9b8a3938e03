import { mkdir, open, readdir, rename, stat } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { lockFile } from '../../core/file-lock.js';
import { PerfError } from '../../core/perf.error.js';
import { reasonOf } from '../../core/reason.js';
import type { DurableEntry } from '../durable/durable-entry.js';
import { RejectFile, type RejectedEntry } from './reject-file.js';
import { Segment, type Place, type Taken } from './segment.js';
import { OneAtATime } from './one-at-a-time.js';

const SEGMENT_BYTES = 8 * 1024 * 1024;

type Report = (cause: string, message: string) => void;
interface Append {
  readonly entry: DurableEntry;
  readonly done: (place: Place | null) => void;
}

/**
 * Durable work on disk until its store has it: numbered segments `<file>.<n>`, each deleted whole once all of its entries
 * are struck off. Entries that arrive together share one write and one fdatasync.
 */
export class Spill {
  private segments: Segment[] = [];
  private active: Segment | null = null;
  private file = '';
  private nextNumber = 1;
  private rejects: RejectFile | null = null;
  private appends: Append[] = [];
  private sweeping = false;
  private closed = false;
  /** Appends, reads and sweeps: nothing else touches the files. */
  private readonly disk = new OneAtATime();
  private unlock: () => void = () => {};
  private report: Report = () => {};

  /** `path`: of a file, or of a folder in which `deferred.ndjson` is made. */
  constructor(private readonly options: { readonly path: string; readonly maxBytes: number }) {}

  /** How many entries are neither stored nor discarded. */
  get entries(): number {
    return this.segments.reduce((sum, { outstanding }) => sum + outstanding, 0);
  }

  /** How many of them are on disk only. */
  get parked(): number {
    return this.segments.reduce((sum, { parked }) => sum + parked, 0);
  }

  /**
   * Resolves with how many entries an earlier process has left behind.
   * @throws PERF_ERR_STORE when a living process uses the same path, and what the disk says
   */
  async open(report: Report): Promise<number> {
    this.report = report;
    this.file = await fileAt(resolve(this.options.path));
    this.unlock = await lockFile(this.file, inUse);
    this.rejects = new RejectFile(`${this.file}.rejects`);
    for (const { path, number } of await segmentsOf(this.file)) {
      this.nextNumber = number + 1;
      this.segments.push(await Segment.reopen(path));
    }
    const damaged = this.segments.filter(({ damagedLines }) => damagedLines > 0);
    for (const { path, damagedLines } of damaged) {
      const cause = `the spill file ${path} holds damaged lines`;
      report(cause, `${cause}: ${damagedLines} were skipped, the others are sent. It is kept as ${path}.damaged.`);
    }
    await this.removeFinished();
    return this.parked;
  }

  /** Resolves when the entry is on disk, with its place; null when the disk refuses it, which is reported, or it is closed. */
  append(entry: DurableEntry): Promise<Place | null> {
    return new Promise((done) => {
      if (this.closed) return done(null);
      if (this.appends.push({ entry, done }) > 1) return;
      void this.disk.run(async () => {
        // What other requests append in this turn joins the same write.
        await nextTurn();
        await this.writeAppends(this.appends.splice(0));
      });
    });
  }

  /** Forgets entries: they are stored, or need not run. */
  strike(places: readonly Place[]): void {
    for (const { segment, offset } of places) segment.strike(offset);
    if (this.sweeping) return;
    this.sweeping = true;
    void this.disk.run(async () => {
      await nextTurn();
      await this.sweep();
    });
  }

  /** Keeps an entry on disk only, since memory is full. */
  park({ segment, offset }: Place): void {
    segment.park(offset);
  }

  /** Brings up to `limit` parked entries back, oldest first. Rejects when the disk cannot be read: they stay parked. */
  takeParked(limit: number): Promise<Taken[]> {
    return this.disk.run(async () => {
      const segment = this.segments.find(({ parked }) => parked > 0);
      try {
        return (await segment?.takeParked(limit)) ?? [];
      } catch (error) {
        this.failed('read', error);
        throw error;
      }
    });
  }

  /** Strikes an entry off that the store will never take, once it is among the rejects. */
  async reject(entry: DurableEntry, place: Place, error: string): Promise<void> {
    try {
      await this.rejects?.add({ ...entry, error, rejectedAt: Date.now() });
      this.strike([place]);
    } catch (failure) {
      // It stays in its segment, and is sent again at the next start.
      this.failed('write the rejects', failure);
    }
  }

  async rejected(): Promise<RejectedEntry[]> {
    return (await this.rejects?.read()) ?? [];
  }

  /** Takes rejects out: they were sent again. */
  async forgetRejected(ids: readonly string[]): Promise<void> {
    await this.rejects?.remove(ids);
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.rejects?.settled();
    await this.disk.run(async () => {
      await this.sweep();
      for (const segment of this.segments.splice(0)) await segment.close();
      this.unlock();
      this.unlock = () => {};
    });
  }

  /** Writes down what was struck off, and removes what is done with. */
  private async sweep(): Promise<void> {
    this.sweeping = false;
    try {
      for (const segment of this.segments) await segment.writeStrikes();
      await this.removeFinished();
    } catch (error) {
      this.failed('strike off', error);
    }
  }

  private async writeAppends(appends: readonly Append[]): Promise<void> {
    try {
      const segment = await this.writable();
      const places = await segment.append(appends.map(({ entry }) => entry));
      for (const [i, { done }] of appends.entries()) done(places[i]!);
    } catch (error) {
      this.failed('write', error);
      for (const { done } of appends) done(null);
    }
  }

  /** The segment that is written to; a new one when there is none, when it is full, and behind a torn end. */
  private async writable(): Promise<Segment> {
    const { active } = this;
    const heldBytes = this.segments.reduce((sum, { bytes }) => sum + bytes, 0);
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
      if (segment === this.active && segment.bytes < SEGMENT_BYTES && this.appends.length > 0) continue;
      this.segments = this.segments.filter((other) => other !== segment);
      if (this.active === segment) this.active = null;
      if (segment.damagedLines === 0) await segment.remove();
      else {
        await segment.close();
        await rename(segment.path, `${segment.path}.damaged`);
      }
    }
  }

  private failed(step: string, error: unknown): void {
    const { code = reasonOf(error) } = error as NodeJS.ErrnoException;
    const cause = `spill file: could not ${step}: ${code}`;
    this.report(cause, `${cause}. New durable work is in memory only until it can; what is on disk stays there.`);
  }
}

async function fileAt(path: string): Promise<string> {
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory() === true) return join(path, 'deferred.ndjson');
  await mkdir(dirname(path), { recursive: true });
  return path;
}

/** Segments that an earlier process has left, oldest first; 0.1.0 wrote to `<file>` itself, last. */
async function segmentsOf(file: string): Promise<{ path: string; number: number }[]> {
  const name = basename(file);
  const numbered = (await readdir(dirname(file)))
    .filter((other) => other.startsWith(`${name}.`) && /^\d+$/.test(other.slice(name.length + 1)))
    .map((other) => ({ path: join(dirname(file), other), number: Number(other.slice(name.length + 1)) }))
    .toSorted((a, b) => a.number - b.number);
  const found = await stat(file).catch(() => null);
  const last = numbered.at(-1)?.number ?? 0;
  return found?.isFile() === true ? [...numbered, { path: file, number: last }] : numbered;
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

function inUse(pid: number): PerfError {
  return new PerfError(
    'PERF_ERR_STORE',
    `\`spillPath\` is in use by process ${pid}, but each process needs a file of its own. ` +
      'Give every worker of a cluster its own path, the same one at each of its starts.',
  );
}
