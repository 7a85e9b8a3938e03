import { open, unlink, type FileHandle } from 'node:fs/promises';
import { lineOf, linesOf, parseEntry, parseStruck, struckLine } from './line.js';
import type { DurableEntry } from '../durable/durable-entry.js';

/** Text that is brought back at a time, bytes. */
const TAKE_BYTES = 1024 * 1024;

/** Where an entry stands on disk. */
export interface Place {
  readonly segment: Segment;
  readonly offset: number;
}

/** An entry that is brought back. */
export interface Taken {
  readonly entry: DurableEntry;
  readonly place: Place;
}

/**
 * One append-only file of the spill: entries, and lines that strike entries of the same file off. Deleted whole once
 * all of its entries are struck off.
 */
export class Segment {
  /** Entries that are not struck off. */
  outstanding = 0;
  /** Of those, the ones that are on disk only. */
  parked = 0;
  /** What is known to be whole; more may stand in the file after a write that failed. */
  bytes = 0;
  /** A failed write could not be cut off: nothing may be appended behind it. */
  torn = false;
  /** Lines inside the file that cannot be read. The file is kept then, under another name. */
  damagedLines = 0;
  // By the offsets of their lines: an id may stand in a file more than once.
  private readonly struck = new Set<number>();
  private readonly inMemory = new Set<number>();
  private unwritten: number[] = [];
  /** No parked entry stands before this offset. */
  private parkedFrom = 0;

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
      for (const name of struck ?? []) {
        const offset = typeof name === 'string' ? byId.get(name) : name;
        if (offset !== undefined && offsets.delete(offset)) segment.struck.add(offset);
      }
      const entry = struck === null ? parseEntry(text) : null;
      if (entry !== null) {
        offsets.add(start);
        byId.set(entry.id, start);
      }
      const isRead = struck !== null || entry !== null;
      if (!complete) await segment.endTornLine(start, isRead);
      else if (!isRead) segment.damagedLines += 1;
    }
    segment.outstanding = segment.parked = offsets.size;
    return segment;
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
    this.outstanding += places.length;
    return places;
  }

  /** The entry is on disk only from now on. */
  park(offset: number): void {
    if (!this.inMemory.delete(offset)) return;
    this.parkedFrom = Math.min(this.parkedFrom, offset);
    this.parked += 1;
  }

  strike(offset: number): void {
    if (!this.inMemory.delete(offset)) return;
    this.struck.add(offset);
    this.unwritten.push(offset);
    this.outstanding -= 1;
  }

  /** Without fsync: a strike that a power cut loses makes its job be sent again under its own id, no more. */
  async writeStrikes(): Promise<void> {
    if (this.unwritten.length === 0 || this.torn) return;
    const offsets = this.unwritten.splice(0);
    try {
      await this.write(struckLine(offsets), false);
    } catch (error) {
      this.unwritten.unshift(...offsets);
      throw error;
    }
  }

  /** Brings up to `limit` parked entries into memory, oldest first. Reads a slice a turn of the event loop. */
  async takeParked(limit: number): Promise<Taken[]> {
    const taken: Taken[] = [];
    const from = this.parkedFrom;
    // Whoever is parked meanwhile lowers it again.
    this.parkedFrom = this.bytes;
    try {
      for await (const { text, start: offset, end } of linesOf(this.handle, from)) {
        if (taken.length >= limit || offset - from >= TAKE_BYTES) {
          this.parkedFrom = Math.min(this.parkedFrom, offset);
          break;
        }
        const entry = this.struck.has(offset) || this.inMemory.has(offset) ? null : parseEntry(text);
        if (entry !== null) taken.push({ entry, place: { segment: this, offset } });
        if (end >= this.bytes) break;
      }
    } catch (error) {
      this.parkedFrom = Math.min(this.parkedFrom, from);
      throw error;
    }
    for (const { place } of taken) this.inMemory.add(place.offset);
    // What could be read before and cannot now is not waited for.
    this.parked = this.parkedFrom === this.bytes ? 0 : this.parked - taken.length;
    return taken;
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
      await this.handle.truncate(this.bytes).catch(() => (this.torn = true));
      throw error;
    }
  }
}
