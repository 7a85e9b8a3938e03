import { mkdir, open, readdir, rename, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { DurableEntry } from '../durable/durable-entry.js';
import { lockSpill } from './lock.js';
import { RejectFile, type RejectedEntry } from './reject-file.js';
import { Segment } from './segment.js';

const SEGMENT_BYTES = 8 * 1024 * 1024;

type Report = (cause: string, message: string) => void;
/** Where an entry stands on disk. */
export interface Place {
  readonly segment: Segment;
  readonly offset: number;
}
interface Append {
  readonly entry: DurableEntry;
  readonly done: (place: Place | null) => void;
}
type Taken = { readonly entry: DurableEntry; readonly place: Place }[];
interface Take {
  readonly limit: number;
  readonly done: (taken: Taken) => void;
  readonly failed: (error: unknown) => void;
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
  private takes: Take[] = [];
  private working: Promise<void> | null = null;
  /** Something came that {@link work} may not have seen yet. */
  private unseen = false;
  private unlock: () => void = () => {};
  private report: Report = () => {};

  private readonly path: string;
  private readonly maxBytes: number;

  /** `path`: of a file, or of a folder in which `deferred.ndjson` is made. */
  constructor({ path, maxBytes }: { readonly path: string; readonly maxBytes: number }) {
    this.path = path;
    this.maxBytes = maxBytes;
  }

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
    this.file = await fileAt(resolve(this.path));
    this.unlock = await lockSpill(this.file);
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

  /** Resolves when the entry is on disk, with its place; null (and a report) when the disk refuses it. */
  append(entry: DurableEntry): Promise<Place | null> {
    return new Promise((done) => {
      this.appends.push({ entry, done });
      this.wake();
    });
  }

  /** Forgets entries: they are stored, or need not run. */
  strike(places: readonly Place[]): void {
    for (const { segment, offset } of places) segment.strike(offset);
    this.wake();
  }

  /** Keeps an entry on disk only, since memory is full. */
  park({ segment, offset }: Place): void {
    segment.park(offset);
  }

  /** Brings up to `limit` parked entries back, oldest first. Rejects when the disk cannot be read: they stay parked. */
  takeParked(limit: number): Promise<Taken> {
    return new Promise((done, failed) => {
      this.takes.push({ limit, done, failed });
      this.wake();
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
    while (this.working !== null) await this.working;
    await this.rejects?.settled();
    try {
      for (const segment of this.segments) await segment.writeStrikes();
      await this.removeFinished();
    } catch (error) {
      this.failed('strike off', error);
    }
    for (const segment of this.segments) await segment.close();
    this.segments = [];
    this.active = null;
    this.unlock();
    this.unlock = () => {};
  }

  private wake(): void {
    this.unseen = true;
    this.working ??= this.work();
  }

  /** The only one to touch the segments, one thing after the other: appends first, since responses wait for them. */
  private async work(): Promise<void> {
    while (this.unseen) {
      // What other requests append in this turn joins the same write.
      await new Promise<void>((next) => setImmediate(next));
      this.unseen = false;
      while (this.appends.length > 0) await this.writeAppends(this.appends.splice(0));
      for (const take of this.takes.splice(0)) await this.readParked(take);
      try {
        for (const segment of this.segments) await segment.writeStrikes();
        await this.removeFinished();
      } catch (error) {
        this.failed('strike off', error);
      }
    }
    this.working = null;
  }

  private async writeAppends(appends: readonly Append[]): Promise<void> {
    try {
      const segment = await this.writable();
      const offsets = await segment.append(appends.map(({ entry }) => entry));
      for (const [i, { done }] of appends.entries()) done({ segment, offset: offsets[i]! });
    } catch (error) {
      this.failed('write', error);
      for (const { done } of appends) done(null);
    }
  }

  /** The segment that is written to; a new one when there is none, when it is full, and behind a torn end. */
  private async writable(): Promise<Segment> {
    const { active } = this;
    const heldBytes = this.segments.reduce((sum, { bytes }) => sum + bytes, 0);
    if (heldBytes >= this.maxBytes) throw new Error(`it holds ${heldBytes} bytes already (spillMaxBytes)`);
    if (active !== null && !active.torn && active.bytes < SEGMENT_BYTES) return active;
    const segment = await Segment.create(`${this.file}.${this.nextNumber}`);
    this.nextNumber += 1;
    this.segments.push(segment);
    this.active = segment;
    await syncFolder(dirname(this.file));
    return segment;
  }

  private async readParked({ limit, done, failed }: Take): Promise<void> {
    const segment = this.segments.find(({ parked }) => parked > 0);
    if (segment === undefined || limit < 1) return done([]);
    try {
      const taken = await segment.takeParked(limit);
      done(taken.map(({ entry, offset }) => ({ entry, place: { segment, offset } })));
    } catch (error) {
      this.failed('read', error);
      failed(error);
    }
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
    const reason = (error as NodeJS.ErrnoException).code ?? (error instanceof Error ? error.message : String(error));
    const cause = `spill file: could not ${step}: ${reason}`;
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
