import { constants } from 'node:fs';
import { open, unlink, type FileHandle } from 'node:fs/promises';
import { readLines, parseEntry, parseStruck, writeEntry, writeStruck, type SpilledEntry } from './line.js';
import type { DurableEntry } from '../durable/durable-entry.js';

/** Text that is brought back at a time, bytes. */
const TAKE_BYTES = 1024 * 1024;
const { O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
/** Windows has neither. */
const NO_LINK = (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0);

/** The position of an entry on disk. */
export interface Place {
  readonly segment: Segment;
  readonly offset: number;
}

export interface Taken {
  readonly entry: SpilledEntry;
  readonly place: Place;
}

/** Parked entries that were brought back, and how many lines cannot be read. */
export interface TakenBack {
  readonly taken: readonly Taken[];
  readonly damagedLines: number;
}

/**
 * One append-only file of the spill: entries, and lines that strike entries of the same file off. Deleted whole once
 * all of its entries are struck off. An entry goes by the offset of its line: an id may be in a file more than once.
 */
export class Segment {
  /** Length of the whole lines, bytes; the file may be longer after a write that failed. */
  bytes = 0;
  /** A failed write could not be cut off: nothing may be appended behind it. */
  torn = false;
  /** Lines inside the file that cannot be read. The file is kept then, under another name. */
  damagedLines = 0;
  /** Another process has the file. */
  lost = false;
  private readonly inMemory = new Set<number>();
  private readonly onDiskOnly: number[] = [];
  private isSorted = true;
  /** Struck off, but the file does not say so yet. */
  private struck: number[] = [];

  private constructor(
    readonly path: string,
    private readonly handle: FileHandle,
  ) {}

  static async create(path: string): Promise<Segment> {
    return new Segment(path, await open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | NO_LINK, 0o600));
  }

  /** Opens a file that an earlier process has left: all of its entries are parked. Parses none of them. */
  static async reopen(path: string): Promise<Segment> {
    const handle = await open(path, O_RDWR | O_APPEND | NO_LINK);
    const segment = new Segment(path, handle);
    try {
      const { nlink, uid, size } = await handle.stat();
      const isRegular = (await handle.stat()).isFile() && nlink === 1 && uid === (process.getuid?.() ?? uid);
      if (!isRegular) throw new Error("it is a link, another user's, or no file");
      const offsets = new Set<number>();
      for await (const { text, start, end, complete } of readLines(handle, 0)) {
        // A line that a crash has torn: its response was never sent.
        if (!complete) break;
        segment.bytes = end;
        const struck = parseStruck(text);
        if (struck === null) offsets.add(start);
        else for (const offset of struck) offsets.delete(offset);
      }
      if (size > segment.bytes) await segment.cutOff();
      for (const offset of offsets) segment.onDiskOnly.push(offset);
      return segment;
    } catch (error) {
      await handle.close();
      throw error;
    }
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
    const lines = entries.map(writeEntry);
    const places = lines.map((text) => {
      const offset = end;
      end += Buffer.byteLength(text);
      return { segment: this, offset };
    });
    await this.write(lines.join(''));
    for (const { offset } of places) this.inMemory.add(offset);
    return places;
  }

  park(offset: number): void {
    if (this.inMemory.delete(offset)) this.onDiskOnly.push(offset);
    this.isSorted = false;
  }

  strike(offset: number): void {
    if (this.inMemory.delete(offset)) this.struck.push(offset);
  }

  /** Without fsync: a strike that a power cut loses makes its job be sent again under its own id, no more. */
  async writeStrikes(): Promise<void> {
    if (this.struck.length === 0 || this.torn || this.lost) return;
    const offsets = this.struck.splice(0);
    try {
      await this.write(writeStruck(offsets), false);
    } catch (error) {
      this.struck.unshift(...offsets);
      throw error;
    }
  }

  /** Brings up to `limit` parked entries into memory, oldest first. Reads a slice a turn of the event loop. */
  async takeParked(limit: number): Promise<TakenBack> {
    this.sort();
    const wanted = this.onDiskOnly.slice(0, limit);
    const from = wanted[0]!;
    const taken: Taken[] = [];
    let done = 0;
    for await (const { text, start: offset } of readLines(this.handle, from)) {
      if (offset - from >= TAKE_BYTES && done > 0) break;
      // Entries that could be read before and cannot be read now are skipped.
      while (wanted[done]! < offset) done += 1;
      const entry = wanted[done] === offset ? parseEntry(text) : null;
      if (entry !== null) taken.push({ entry, place: { segment: this, offset } });
      if (wanted[done] === offset) done += 1;
      if (done === wanted.length) break;
    }
    // Entries that are parked meanwhile are behind them.
    const gone = this.onDiskOnly.splice(0, Math.max(1, done));
    const damagedLines = gone.length - taken.length;
    this.damagedLines += damagedLines;
    for (const { place } of taken) this.inMemory.add(place.offset);
    return { taken, damagedLines };
  }

  /** Parked entries without taking them, oldest first. What cannot be read is parked no more. */
  async readParked(skip: number, limit: number): Promise<{ read: Taken[]; damagedLines: number }> {
    this.sort();
    const wanted = this.onDiskOnly.slice(skip, skip + limit);
    const read: Taken[] = [];
    let done = 0;
    for await (const { text, start: offset } of readLines(this.handle, wanted[0] ?? this.bytes)) {
      while (wanted[done]! < offset) done += 1;
      if (done === wanted.length) break;
      const entry = wanted[done] === offset ? parseEntry(text) : null;
      if (entry !== null) read.push({ entry, place: { segment: this, offset } });
    }
    const readable = new Set(read.map(({ place }) => place.offset));
    for (const offset of wanted) if (!readable.has(offset)) this.take(offset);
    return { read, damagedLines: wanted.length - read.length };
  }

  /** Takes a parked entry: no other caller gets it until it is parked again or struck off. */
  take(offset: number): void {
    const at = this.onDiskOnly.indexOf(offset);
    if (at < 0) return;
    this.onDiskOnly.splice(at, 1);
    this.inMemory.add(offset);
  }

  /** Empties the file for a new segment: earlier places are invalid in it. */
  async reset(): Promise<Segment> {
    await this.handle.truncate(0);
    this.lost = true;
    return new Segment(this.path, this.handle);
  }

  async remove(): Promise<void> {
    await this.handle.close();
    await unlink(this.path);
  }

  close(): Promise<void> {
    return this.handle.close();
  }

  private sort(): void {
    if (!this.isSorted) this.onDiskOnly.sort((a, b) => a - b);
    this.isSorted = true;
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

  /** Removes what is behind the last whole line. */
  private async cutOff(): Promise<void> {
    await this.handle.truncate(this.bytes).catch(() => (this.torn = true));
  }
}
