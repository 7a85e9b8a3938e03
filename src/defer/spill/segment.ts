import { constants } from 'node:fs';
import { open, unlink, type FileHandle } from 'node:fs/promises';
import type { DurableEntry } from '../durable/durable-entry.js';
import { parseEntry, parseStruck, readLines, STRUCK, writeEntry, type SpilledEntry } from './line.js';

const { O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
/** Windows has neither. */
const NO_LINK = (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0);

export interface Place {
  readonly segment: Segment;
  readonly offset: number;
}

export interface Taken {
  readonly entry: SpilledEntry;
  readonly place: Place;
}

/**
 * One append-only file: entries, and lines that strike entries of the same file off. Deleted whole once all of its entries are
 * struck off. An entry is known by the offset of its line, and memory has the offsets of those on their way alone: every other
 * line that is not struck off is parked.
 */
export class Segment {
  /** Length of the whole lines, bytes; the file may be longer after a write that failed. */
  bytes = 0;
  /** A failed write could not be cut off: nothing may be appended behind it. */
  torn = false;
  /** Lines that cannot be read. The file is kept then, under another name. */
  damagedLines = 0;
  /** Another process has the file, or another segment. */
  lost = false;
  /** Entries on disk alone. */
  parked = 0;
  private parkings = 0;
  private readonly live = new Set<number>();
  /** Struck off, but the file does not contain it yet. */
  private struck: number[] = [];

  private constructor(
    readonly path: string,
    private readonly handle: FileHandle,
  ) {}

  static async create(path: string): Promise<Segment> {
    return new Segment(path, await open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | NO_LINK, 0o600));
  }

  /** Opens a file that another process has left: all of its entries are parked. Parses none of them. */
  static async reopen(path: string): Promise<Segment> {
    const handle = await open(path, O_RDWR | O_APPEND | NO_LINK);
    const segment = new Segment(path, handle);
    try {
      const found = await handle.stat();
      const isOwn = found.nlink === 1 && found.uid === (process.getuid?.() ?? found.uid);
      if (!found.isFile() || !isOwn) throw new Error("it is a link, another user's, or no file");
      const parked = new Set<number>();
      for await (const { text, start, end, complete } of readLines(handle, found.size)) {
        // A line that a crash has torn: its response was never sent.
        if (!complete) break;
        segment.bytes = end;
        const struck = parseStruck(text);
        if (struck === null) parked.add(start);
        else for (const offset of struck) parked.delete(offset);
      }
      segment.parked = parked.size;
      if (found.size > segment.bytes) await segment.cutOff();
      return segment;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  get outstanding(): number {
    return this.live.size + this.parked;
  }

  /**
   * Appends entries; they are on disk when it resolves, with null where another process may have read the file before. A write that
   * fails leaves nothing of them behind.
   */
  async append(entries: readonly DurableEntry[], isOurs: () => Promise<boolean>): Promise<Place[] | null> {
    let end = this.bytes;
    const lines = entries.map(writeEntry);
    const places = lines.map((text) => {
      const offset = end;
      end += Buffer.byteLength(text);
      return { segment: this, offset };
    });
    const [stays] = await this.write(lines.join(''), () => Promise.all([isOurs(), this.handle.datasync()]));
    if (!stays) return null;
    for (const { offset } of places) this.live.add(offset);
    return places;
  }

  /** Memory lets go of an entry. */
  park(offset: number): void {
    if (!this.live.delete(offset)) return;
    this.parked += 1;
    this.parkings += 1;
  }

  strike(offset: number): void {
    if (this.live.delete(offset)) this.struck.push(offset);
  }

  /** Without fsync: a strike that a power cut loses makes its job be sent again under its own id, no more. */
  async writeStrikes(): Promise<void> {
    if (this.struck.length === 0 || this.torn || this.lost) return;
    const offsets = [...this.struck];
    await this.write(`${STRUCK}${JSON.stringify(offsets)}}\n`, async () => {});
    this.struck = this.struck.slice(offsets.length);
  }

  /** Takes parked entries, oldest first, a slice of the file a turn of the event loop; null for a line that cannot be read. */
  async *takeParked(): AsyncGenerator<Taken | null> {
    const { bytes, parkings } = this;
    // Entries in memory or struck off by now, whatever becomes of them meanwhile.
    const others = new Set([...this.live, ...this.struck]);
    for await (const { text } of readLines(this.handle, bytes)) {
      for (const offset of parseStruck(text) ?? []) others.add(offset);
    }
    for await (const { text, start: offset } of readLines(this.handle, bytes)) {
      if (others.has(offset) || text.startsWith(STRUCK)) continue;
      const entry = parseEntry(text);
      this.parked -= 1;
      if (entry === null) this.damagedLines += 1;
      else this.live.add(offset);
      yield entry && { entry, place: { segment: this, offset } };
      // The file may be closed by now.
      if (this.parked === 0 || this.lost) return;
    }
    // Nothing was parked meanwhile: the rest of what there was is not in the file any more.
    while (this.parked > 0 && this.parkings === parkings && !this.lost) {
      this.parked -= 1;
      this.damagedLines += 1;
      yield null;
    }
  }

  /** Empties the file for a new segment: earlier places are invalid in it. */
  async reset(): Promise<Segment> {
    await this.handle.truncate(0);
    this.lost = true;
    return new Segment(this.path, this.handle);
  }

  async remove(): Promise<void> {
    await this.close();
    await unlink(this.path);
  }

  async close(): Promise<void> {
    this.lost = true;
    await this.handle.close();
  }

  private async write<T>(text: string, sync: () => Promise<T>): Promise<T> {
    try {
      await this.handle.appendFile(text);
      const synced = await sync();
      this.bytes += Buffer.byteLength(text);
      return synced;
    } catch (error) {
      await this.cutOff();
      throw error;
    }
  }

  private async cutOff(): Promise<void> {
    await this.handle.truncate(this.bytes).catch(() => (this.torn = true));
  }
}
