import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { open, rename, unlink, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseEntry, writeEntry, type DurableEntry } from '../durable/entry.js';
import type { ProcessFolder } from './process-folder.js';

const { O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
/** Windows has neither. */
const NO_LINK = (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0);
const NEWLINE = 10;
/** Parsed in one turn of the event loop, bytes: some 2 ms. */
const SLICE_BYTES = 256 * 1024;
/** The start of a line that strikes entries of the same file off, by the offsets of their lines. */
const STRUCK = '{"struck":';

export interface Place {
  readonly segment: Segment;
  readonly offset: number;
}

export interface Taken {
  readonly entry: DurableEntry;
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
  /** It is closed, or another process has the file. */
  lost = false;
  /** Entries on disk alone. */
  parked = 0;
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
    const segment = new Segment(path, await openOwn(path));
    try {
      const { size } = await segment.handle.stat();
      const { lines, end } = await segment.readParked(size);
      [segment.parked, segment.bytes] = [lines.length, end];
      // A line that a crash has torn: its response was never sent.
      if (size > end) await segment.cutOff();
      return segment;
    } catch (error) {
      await segment.close();
      throw error;
    }
  }

  get outstanding(): number {
    return this.live.size + this.parked;
  }

  /** Resolves when they are on disk, with null where another process may have read the file before. A failed write leaves nothing. */
  async append(entries: readonly DurableEntry[], folder: Pick<ProcessFolder, 'owns'>): Promise<Place[] | null> {
    let end = this.bytes;
    const lines = entries.map(writeEntry);
    const places = lines.map((text) => {
      const offset = end;
      end += Buffer.byteLength(text);
      return { segment: this, offset };
    });
    const [stays] = await this.write(lines.join(''), () =>
      Promise.all([folder.owns(this.path), this.handle.datasync()]),
    );
    if (!stays) return null;
    for (const { offset } of places) this.live.add(offset);
    return places;
  }

  /** Memory lets go of an entry. */
  park(offset: number): void {
    if (this.live.delete(offset)) this.parked += 1;
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

  /** Takes what is parked now, oldest first, and counts the lines that cannot be read. Parses a slice a turn of the event loop. */
  async takeParked(): Promise<{ readonly taken: Taken[]; readonly damaged: number }> {
    const expected = this.parked;
    const { lines } = await this.readParked(this.bytes);
    const taken: Taken[] = [];
    let parsed = 0;
    // Lines too few: the others are not in the file any more.
    for (const { offset, text } of lines.slice(0, expected)) {
      const entry = parseEntry(text.toString());
      if (entry !== null) taken.push({ entry, place: { segment: this, offset } });
      parsed += text.length;
      if (parsed > SLICE_BYTES) parsed = await nextTurn(0);
    }
    if (this.lost) return { taken: [], damaged: 0 };
    const damaged = expected - taken.length;
    this.parked -= expected;
    this.damagedLines += damaged;
    for (const { place } of taken) this.live.add(place.offset);
    return { taken, damaged };
  }

  /** Reads the lines of parked entries at once: a segment has 8 MiB and one write more. `end`: of the last whole line. */
  private async readParked(bytes: number) {
    const others = new Set([...this.live, ...this.struck]);
    const file = await readBytes(this.handle, bytes);
    const lines: { readonly offset: number; readonly text: Buffer }[] = [];
    let offset = 0;
    for (let end = file.indexOf(NEWLINE); end >= 0; end = file.indexOf(NEWLINE, offset)) {
      const text = file.subarray(offset, end);
      if (text.toString('latin1', 0, STRUCK.length) !== STRUCK) lines.push({ offset, text });
      else for (const struck of parseStruck(text.toString())) others.add(struck);
      offset = end + 1;
    }
    return { lines: lines.filter((line) => !others.has(line.offset)), end: offset };
  }

  /** Deletes the file; where some of its lines cannot be read, it stays under another name. */
  async remove(): Promise<void> {
    await this.close();
    if (this.damagedLines === 0) return unlink(this.path);
    await rename(this.path, join(dirname(this.path), '..', `damaged-${randomUUID()}.ndjson`));
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

/** Opens a file of this user's own: no link, no pipe. */
async function openOwn(path: string): Promise<FileHandle> {
  const handle = await open(path, O_RDWR | O_APPEND | NO_LINK);
  const found = await handle.stat();
  if (found.isFile() && found.nlink === 1 && found.uid === (process.getuid?.() ?? found.uid)) return handle;
  await handle.close();
  throw new Error(`${path} is a link, another user's, or no file`);
}

async function readBytes(handle: FileHandle, bytes: number): Promise<Buffer> {
  const file = Buffer.alloc(bytes);
  for (let at = 0; at < bytes;) {
    const { bytesRead } = await handle.read(file, at, bytes - at, at);
    if (bytesRead === 0) return file.subarray(0, at);
    at += bytesRead;
  }
  return file;
}

function parseStruck(text: string): readonly number[] {
  try {
    const { struck } = JSON.parse(text) as { struck?: unknown };
    return Array.isArray(struck) ? (struck as number[]) : [];
  } catch {
    return [];
  }
}
