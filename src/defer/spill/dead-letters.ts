import { unlink } from 'node:fs/promises';
import { describeReason } from '../../core/reason.js';
import { within } from '../../core/within.js';
import { countBytes, fromJson, parseEntry, writeEntry, type DurableEntry } from '../durable/entry.js';
import type { ProcessFolder } from './process-folder.js';
import { openOwn } from './segment.js';

/** More letters, or more of their data as JSON, and the oldest makes room. */
const MAX_LETTERS = 1_000;
const MAX_BYTES = 16 * 1024 * 1024;
/** A reader waits so long for letters on their way from or to the disk, milliseconds. */
const SETTLE_MS = 5_000;

/** Work that its store has refused for good. */
export interface RejectedWork {
  readonly id: string;
  readonly name: string;
  readonly data: unknown;
  /** The last error of the store. */
  readonly error: string;
  /** Epoch milliseconds. */
  readonly rejectedAt: number;
}

export interface DeadLetter {
  readonly entry: DurableEntry;
  /** Null while it is not on disk. */
  file: string | null;
  /** Strikes its entry off the spill: the letter is on disk, or gone. */
  readonly strike: () => void;
}

/** Work that its store has refused for good: in memory, to be read and sent again, and with a spill in a file each. */
export class DeadLetters {
  private letters: DeadLetter[] = [];
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly folder: ProcessFolder | null,
    private readonly report: (cause: string, message: string) => void,
  ) {}

  /** Keeps one; `strike` is called when it is on disk, or gone. */
  add(entry: DurableEntry, strike: () => void = () => {}): void {
    const letter: DeadLetter = { entry, file: null, strike };
    this.keep(letter);
    this.onDisk(async () => {
      if (this.folder === null) return;
      letter.file = await this.folder.writeFile('dead', writeEntry(entry));
      strike();
    });
  }

  /** Takes over the files of processes that are gone. */
  adopt(files: readonly string[]): void {
    if (files.length === 0) return;
    this.onDisk(async () => {
      for (const file of files) await this.read(file).catch((error: unknown) => this.reportTrouble(error));
      this.letters.sort((a, b) => (a.entry.rejectedAt ?? 0) - (b.entry.rejectedAt ?? 0));
    });
  }

  private async read(file: string): Promise<void> {
    const handle = await openOwn(file);
    try {
      const entry = parseEntry(await handle.readFile('utf8'));
      if (entry !== null) return this.keep({ entry, file, strike: () => {} });
    } finally {
      await handle.close();
    }
    await this.folder!.setAside(file);
    throw new Error(`${file} is damaged, and kept under another name`);
  }

  /** One piece of work after the other; readers wait for it, up to 5 s. */
  onDisk(work: () => Promise<void>): void {
    this.last = this.last.then(work).catch((error: unknown) => this.reportTrouble(error));
  }

  private reportTrouble(error: unknown): void {
    const cause = `spill: dead letters: ${(error as NodeJS.ErrnoException).code ?? describeReason(error)}`;
    this.report(cause, `${cause}. What the disk refuses is in memory only.`);
  }

  /** The disk has all of it. */
  async settled(): Promise<void> {
    let last;
    while (last !== this.last) await (last = this.last);
  }

  /** From the oldest on; a negative offset counts from the newest. */
  async list(offset: number, limit: number): Promise<RejectedWork[]> {
    await within(SETTLE_MS, () => this.settled());
    const page = this.letters.slice(offset).slice(0, limit);
    return page.map(({ entry: { id, name, json, error = '', rejectedAt = 0 } }) => {
      return { id, name, data: fromJson(json), error, rejectedAt };
    });
  }

  /** Takes out those with these ids, all without ids, up to `limit`: no other caller gets them. Then `delete` or `keep`. */
  async take(ids: readonly string[] | undefined, limit: number): Promise<DeadLetter[]> {
    await within(SETTLE_MS, () => this.settled());
    const wanted = ids && new Set(ids);
    const taken = new Set(this.letters.filter(({ entry }) => wanted?.has(entry.id) !== false).slice(0, limit));
    this.letters = this.letters.filter((one) => !taken.has(one));
    return [...taken];
  }

  keep(letter: DeadLetter): void {
    this.letters.push(letter);
    while (this.letters.length > MAX_LETTERS || (this.bytes > MAX_BYTES && this.letters.length > 1)) {
      const oldest = this.letters.shift()!;
      this.delete(oldest);
      const cause = `more than ${MAX_LETTERS} dead letters of durable work, or 16 MiB`;
      const advice = 'Look at them: `deferrer.rejected()`.';
      this.report(cause, `${cause}: the oldest, "${oldest.entry.name}", was let go. ${advice}`);
    }
  }

  private get bytes(): number {
    return this.letters.reduce((sum, { entry }) => sum + countBytes(entry.json), 0);
  }

  /** Another process has taken the files over. */
  lose(): void {
    this.letters = this.letters.filter(({ file }) => file === null);
  }

  delete(letter: DeadLetter): void {
    this.onDisk(async () => {
      letter.strike();
      // Another process may have it, and the folder.
      if (letter.file !== null) await unlink(letter.file).catch(() => {});
    });
  }
}
