import { open, rename, writeFile } from 'node:fs/promises';
import type { DurableEntry } from '../durable/durable-entry.js';
import { lineOf, linesOf, parseEntry } from './line.js';
import { OneAtATime } from './one-at-a-time.js';

export interface RejectedEntry extends DurableEntry {
  readonly error: string;
  /** Epoch milliseconds. */
  readonly rejectedAt: number;
}

/** What a store has refused for good, one JSON line each, until somebody looks at it. */
export class RejectFile {
  private readonly disk = new OneAtATime();

  constructor(private readonly path: string) {}

  /** On disk when it resolves. */
  add(entry: RejectedEntry): Promise<void> {
    return this.disk.run(async () => {
      const handle = await open(this.path, 'a', 0o600);
      try {
        // Behind what a crash or a full disk may have left of another.
        await handle.appendFile(`\n${lineOf(entry)}`);
        await handle.datasync();
      } finally {
        await handle.close();
      }
    });
  }

  read(): Promise<RejectedEntry[]> {
    return this.disk.run(() => this.readAll());
  }

  /** Takes those with these ids out. */
  remove(ids: readonly string[]): Promise<void> {
    const gone = new Set(ids);
    return this.disk.run(async () => {
      const kept = (await this.readAll()).filter(({ id }) => !gone.has(id));
      const copy = `${this.path}.new`;
      await writeFile(copy, kept.map(lineOf).join(''), { mode: 0o600, flush: true });
      await rename(copy, this.path);
    });
  }

  /** Resolves when all that was begun is on disk. */
  async settled(): Promise<void> {
    await this.disk.run(() => Promise.resolve());
  }

  private async readAll(): Promise<RejectedEntry[]> {
    let handle;
    try {
      handle = await open(this.path, 'r');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
    try {
      const entries: RejectedEntry[] = [];
      for await (const { text } of linesOf(handle, 0)) {
        const entry = parseEntry(text);
        if (entry !== null) entries.push(entry as RejectedEntry);
      }
      return entries;
    } finally {
      await handle.close();
    }
  }
}
