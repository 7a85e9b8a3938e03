import { open, unlink, type FileHandle } from 'node:fs/promises';
import { lineOf, linesOf, parseEntry, parseStruck, struckLine } from './line.js';
import type { DurableEntry } from '../durable/durable-entry.js';

/** Text that is brought back at a time, bytes. */
const TAKE_BYTES = 1024 * 1024;

/** What asks a disk that has refused whether it takes entries again: more than most of them. */
const PROBE = ' '.repeat(64 * 1024);

/** Where an entry stands on disk. */
export interface Place {
  readonly segment: Segment;
  readonly offset: number;
}

export interface Taken {
  readonly entry: DurableEntry;
  readonly place: Place;
}

/** Parked entries that were brought back, and how many lines could be read before and cannot now. */
export interface TakenBack {
  readonly taken: readonly Taken[];
  readonly damagedLines: number;
}

/**
 * One append-only file of the spill: entries, and lines that strike entries of the same file off. Deleted whole once
 * all of its entries are struck off. An entry goes by the offset of its line: an id may stand in a file more than once.
 */
export class Segment {
  /** What is known to be whole; more may stand in the file after a write that failed. */
  bytes = 0;
  /** A failed write could not be cut off: nothing may be appended behind it. */
  torn = false;
  /** Lines inside the file that cannot be read. The file is kept then, under another name. */
  damagedLines = 0;
  private readonly inMemory = new Set<number>();
  private readonly onDiskOnly: number[] = [];
  /** Struck off, but the file does not say so yet. */
  private struck: number[] = [];

  private constructor(
    readonly path: string,
    private readonly handle: FileHandle,
  ) {}

  static async create(path: string): Promise<Segment> {
    return new Segment(path, await open(path, 'ax+', 0o600));
  }

  /** What an earlier process has left: all of its entries are parked. */
  static async reopen(path: string): Promise<Segment> {
    const segment = new Segment(path, await open(path, 'a+', 0o600));
    const offsets = new Set<number>();
    const byId = new Map<string, number>();
    for await (const { text, start, end, complete } of linesOf(segment.handle, 0)) {
      segment.bytes = end;
      const struck = parseStruck(text);
      for (const name of struck ?? []) offsets.delete(typeof name === 'string' ? (byId.get(name) ?? -1) : name);
      const entry = struck === null ? parseEntry(text) : null;
      if (entry !== null) {
        offsets.add(start);
        byId.set(entry.id, start);
      }
      const isRead = struck !== null || entry !== null;
      if (!complete) await segment.endTornLine(start, isRead);
      else if (!isRead) segment.damagedLines += 1;
    }
    segment.onDiskOnly.push(...offsets);
    return segment;
  }

  get parked(): number {
    return this.onDiskOnly.length;
  }

  get outstanding(): number {
    return this.inMemory.size + this.parked;
  }

  /** Appends entries; they are on disk when it resolves. A write that fails leaves nothing of them behind. */
  async append(entries: readonly DurableEntry[]): Promise<Place[]> {
    let end = this.bytes;
    const lines = entries.map(lineOf);
    const places = lines.map((text) => {
      const offset = end;
      end += Buffer.byteLength(text);
      return { segment: this, offset };
    });
    await this.write(lines.join(''));
    for (const { offset } of places) this.inMemory.add(offset);
    return places;
  }

  /** Rejects as the write of an entry would, and leaves nothing behind. */
  async probe(): Promise<void> {
    try {
      await this.handle.appendFile(PROBE);
      await this.handle.datasync();
    } finally {
      await this.cutOff();
    }
  }

  park(offset: number): void {
    if (this.inMemory.delete(offset)) this.onDiskOnly.push(offset);
  }

  strike(offset: number): void {
    if (this.inMemory.delete(offset)) this.struck.push(offset);
  }

  /** Without fsync: a strike that a power cut loses makes its job be sent again under its own id, no more. */
  async writeStrikes(): Promise<void> {
    if (this.struck.length === 0 || this.torn) return;
    const offsets = this.struck.splice(0);
    try {
      await this.write(struckLine(offsets), false);
    } catch (error) {
      this.struck.unshift(...offsets);
      throw error;
    }
  }

  /** Brings up to `limit` parked entries into memory, oldest first. Reads a slice a turn of the event loop. */
  async takeParked(limit: number): Promise<TakenBack> {
    const wanted = this.onDiskOnly.sort((a, b) => a - b).slice(0, limit);
    const from = wanted[0]!;
    const taken: Taken[] = [];
    let done = 0;
    for await (const { text, start: offset } of linesOf(this.handle, from)) {
      if (offset - from >= TAKE_BYTES && done > 0) break;
      // What could be read before and cannot now is not waited for.
      while (wanted[done]! < offset) done += 1;
      const entry = wanted[done] === offset ? parseEntry(text) : null;
      if (entry !== null) taken.push({ entry, place: { segment: this, offset } });
      if (wanted[done] === offset) done += 1;
      if (done === wanted.length) break;
    }
    // Who is parked meanwhile stands behind them.
    const gone = this.onDiskOnly.splice(0, Math.max(1, done));
    const damagedLines = gone.length - taken.length;
    this.damagedLines += damagedLines;
    for (const { place } of taken) this.inMemory.add(place.offset);
    return { taken, damagedLines };
  }

  async remove(): Promise<void> {
    await this.handle.close();
    await unlink(this.path);
  }

  close(): Promise<void> {
    return this.handle.close();
  }

  /** A last line that a crash has torn: its response was never sent. What is struck off now must not be written behind it. */
  private async endTornLine(start: number, isRead: boolean): Promise<void> {
    try {
      if (isRead) return await this.write('\n', false);
      await this.handle.truncate(start);
      this.bytes = start;
    } catch {
      this.torn = true;
    }
  }

  private async write(text: string, durably = true): Promise<void> {
    try {
      await this.handle.appendFile(text);
      if (durably) await this.handle.datasync();
      this.bytes += Buffer.byteLength(text);
    } catch (error) {
      await this.cutOff();
      throw error;
    }
  }

  /** What stands behind the last whole line. */
  private async cutOff(): Promise<void> {
    await this.handle.truncate(this.bytes).catch(() => (this.torn = true));
  }
}
