import { open, readFile, rename, unlink, type FileHandle } from 'node:fs/promises';
import type { JournalEntry } from './durable-store.js';

/** One line of the file: an entry, or the ids that are struck off. */
type Line = JournalLine | { struck: string[] };
interface JournalLine extends Omit<JournalEntry, 'json'> {
  data?: unknown;
}

/** One append-only NDJSON file: entries, and lines that strike entries of the same file off. */
export class SpillSegment {
  /** Entries that are not struck off. */
  outstanding = 0;
  /** Of those, the ones that are on disk only. */
  parked = 0;
  bytes = 0;
  /** Struck off since strikes were last written. */
  private struck = new Set<string>();

  private constructor(
    private path: string,
    private readonly handle: FileHandle,
  ) {}

  /** Opens or creates it; what it holds from an earlier process is parked. Damaged lines are counted and skipped. */
  static async open(path: string): Promise<{ segment: SpillSegment; damagedLines: number }> {
    const segment = new SpillSegment(path, await open(path, 'a', 0o600));
    const { entries, damagedLines } = await segment.read();
    segment.outstanding = segment.parked = entries.length;
    segment.bytes = (await segment.handle.stat()).size;
    // A torn last line must not swallow the next one.
    if (damagedLines > 0) await segment.handle.appendFile('\n');
    return { segment, damagedLines };
  }

  static line(entry: JournalEntry): string {
    const { json, ...rest } = entry;
    const head = JSON.stringify(rest);
    return json === undefined ? `${head}\n` : `${head.slice(0, -1)},"data":${json}}\n`;
  }

  /** Appends lines and returns when they are on disk. */
  async append(lines: readonly string[]): Promise<void> {
    const text = lines.join('');
    await this.handle.appendFile(text);
    await this.handle.datasync();
    this.bytes += Buffer.byteLength(text);
  }

  strike(id: string): void {
    this.outstanding -= 1;
    this.struck.add(id);
  }

  /**
   * Writes what was struck off. Without fsync: a strike that a power cut loses makes its job be sent again under its
   * own id, no more.
   */
  async writeStrikes(): Promise<void> {
    if (this.struck.size === 0) return;
    const struck = [...this.struck];
    this.struck.clear();
    const line = `${JSON.stringify({ struck })}\n`;
    await this.handle.appendFile(line);
    this.bytes += line.length;
  }

  /** Empties the file; only when nothing is outstanding. */
  async clear(): Promise<void> {
    this.struck.clear();
    await this.handle.truncate(0);
    this.bytes = 0;
  }

  /** Its entries that are not struck off, oldest first. */
  async read(): Promise<{ entries: JournalEntry[]; damagedLines: number }> {
    await this.writeStrikes();
    const entries = new Map<string, JournalEntry>();
    let damagedLines = 0;
    for (const text of (await readFile(this.path, 'utf8')).split('\n')) {
      if (text === '') continue;
      const line = parse(text);
      if (line === null) damagedLines += 1;
      else if ('struck' in line) for (const id of line.struck) entries.delete(id);
      else {
        const { data, ...rest } = line;
        entries.set(line.id, { ...rest, json: data === undefined ? undefined : JSON.stringify(data) });
      }
    }
    // Struck off while the file was being read.
    for (const id of this.struck) entries.delete(id);
    return { entries: [...entries.values()], damagedLines };
  }

  async moveTo(path: string): Promise<void> {
    await rename(this.path, path);
    this.path = path;
  }

  async remove(): Promise<void> {
    await this.handle.close();
    await unlink(this.path);
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

/** Null for a line that a crash has torn. */
function parse(text: string): Line | null {
  try {
    const line = JSON.parse(text) as Partial<JournalLine> & { struck?: unknown };
    return typeof line.id === 'string' || Array.isArray(line.struck) ? (line as Line) : null;
  } catch {
    return null;
  }
}
