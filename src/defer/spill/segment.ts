import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { open, rename, unlink, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseEntry, writeEntry, type DurableEntry } from '../durable/entry.js';
import type { ProcessFolder } from './process-folder.js';

const { O_RDWR, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
/** Refuses links and does not wait for a pipe. Windows has neither flag. */
const NO_LINK = (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0);
const NEWLINE = 10;
/** Parsed in one turn of the event loop, bytes: some 2 ms. */
const SLICE_BYTES = 256 * 1024;
/** Beginning of a line that lists the offsets of entries to strike off. */
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
 * One append-only file of entries, and of lines that strike earlier entries off by the offsets of their lines. An entry is live while
 * memory has it, struck when it need not run any more, and else parked: only the file has it. An all-struck file is deleted.
 */
export class Segment {
  /** Length of the whole lines, bytes: the file is longer after a failed write. */
  bytes = 0;
  /** The half line of a failed write could not be cut off: nothing may be appended behind it. */
  torn = false;
  /** Lines that cannot be read: the file is renamed then instead of deleted. */
  damagedLines = 0;
  /** It is closed, or another process has the file. */
  lost = false;
  parked = 0;
  private readonly live = new Set<number>();
  /** Offsets that are struck off in memory, and not in the file yet. */
  private struck: number[] = [];

  private constructor(
    readonly path: string,
    private readonly handle: FileHandle,
  ) {}

  static async create(path: string): Promise<Segment> {
    return new Segment(path, await open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | NO_LINK, 0o600));
  }

  /** Opens a file of another process. All of its entries are parked; none is parsed. */
  static async reopen(path: string): Promise<Segment> {
    const segment = new Segment(path, await openOwn(path));
    try {
      const { size } = await segment.handle.stat();
      const { lines, end } = await segment.readParked(size);
      [segment.parked, segment.bytes] = [lines.length, end];
      // A crash has torn the last line: the response to it was never sent.
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

  /** Resolves when they are on disk; with null when another process has taken the file over, and may have read it before. */
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

  /** Memory has released the entry. */
  park(offset: number): void {
    if (this.live.delete(offset)) this.parked += 1;
  }

  strike(offset: number): void {
    if (this.live.delete(offset)) this.struck.push(offset);
  }

  /** Without fsync: after a power cut that loses a strike, the job is only sent again under the same id. */
  async writeStrikes(): Promise<void> {
    if (this.struck.length === 0 || this.torn || this.lost) return;
    const offsets = [...this.struck];
    await this.write(`${STRUCK}${JSON.stringify(offsets)}}\n`, async () => {});
    this.struck = this.struck.slice(offsets.length);
  }

  /** Makes all parked entries live, oldest first, and counts damaged lines. Parses a slice in each turn of the event loop. */
  async takeParked(
    folder: Pick<ProcessFolder, 'inOrder'>,
  ): Promise<{ readonly taken: Taken[]; readonly damaged: number }> {
    const [expected, { lines }] = await folder.inOrder(async () => [this.parked, await this.readParked(this.bytes)]);
    const taken: Taken[] = [];
    let parsed = 0;
    // A damaged file may have fewer lines: those that are missing count as damaged.
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

  /** Reads the whole file, 8 MiB and one write at most. `end`: of the last whole line. */
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

/** Opens a regular file of this user. @throws for a link or a pipe */
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
