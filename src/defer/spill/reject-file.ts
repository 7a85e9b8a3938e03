import { appendFile, open, rename, writeFile } from 'node:fs/promises';
import type { DurableEntry } from '../durable/durable-entry.js';
import { lineOf, linesOf, parseEntry } from './line.js';

export interface RejectedEntry extends DurableEntry {
  readonly error: string;
  /** Epoch milliseconds. */
  readonly rejectedAt: number;
}

/** What a store has refused for good, one JSON line each, until somebody looks at it. One call at a time. */
export class RejectFile {
  constructor(private readonly path: string) {}

  async add(entry: RejectedEntry): Promise<void> {
    // Behind what a crash or a full disk may have left of another.
    await appendFile(this.path, `\n${lineOf(entry)}`, { mode: 0o600, flush: true });
  }

  async remove(ids: ReadonlySet<string>): Promise<void> {
    const kept = (await this.read()).filter(({ id }) => !ids.has(id));
    const copy = `${this.path}.new`;
    await writeFile(copy, kept.map(lineOf).join(''), { mode: 0o600, flush: true });
    await rename(copy, this.path);
  }

  async read(): Promise<RejectedEntry[]> {
    const handle = await open(this.path, 'r').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    const entries: RejectedEntry[] = [];
    if (handle === null) return entries;
    try {
      for await (const { text } of linesOf(handle, 0)) {
        const entry = parseEntry(text);
        if (entry !== null) entries.push(entry as RejectedEntry);
      }
    } finally {
      await handle.close();
    }
    return entries;
  }
}
