import { countBytes, fromJson, type DurableEntry } from '../durable/entry.js';
import type { Place } from './segment.js';
import type { Spill } from './spill.js';

/** Beyond these limits, of letters and of their data as JSON, the oldest letter is deleted. */
const MAX_LETTERS = 1_000;
const MAX_BYTES = 16 * 1024 * 1024;

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
  readonly error: string;
  readonly rejectedAt: number;
  /** Strikes the work's entry off: called when the letter is on disk, or deleted. */
  readonly strike: () => void;
  readonly place: Promise<Place | null> | null;
}

/**
 * Work that its store has refused for good, in memory for `rejected()` and `resend()`. With a spill it is on disk too: the next process
 * sends it once more.
 */
export class DeadLetters {
  private letters: DeadLetter[] = [];

  constructor(
    /** A spill of its own: a letter among work would keep the whole file from being deleted. */
    private readonly spill: Spill | null,
    private readonly report: (cause: string, message: string) => void,
  ) {}

  add(entry: DurableEntry, error: string, strike: () => void = () => {}): void {
    const place = this.spill?.append(entry) ?? null;
    void place?.then((written) => (written === null ? undefined : strike()));
    this.keep({ entry, error, rejectedAt: Date.now(), strike, place });
  }

  /** From the oldest on; a negative offset counts from the newest. */
  readPage(offset = 0, limit = 100): DeadLetter[] {
    return this.letters.slice(offset).slice(0, limit);
  }

  list(offset?: number, limit?: number): RejectedWork[] {
    return this.readPage(offset, limit).map(({ entry: { id, name, json }, error, rejectedAt }) => {
      return { id, name, data: fromJson(json), error, rejectedAt };
    });
  }

  /** Takes letters out, all without `ids`, up to `limit`: no other caller gets them. The caller then calls `delete` or `keep`. */
  take(ids: readonly string[] | undefined, limit: number): DeadLetter[] {
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

  delete({ strike, place }: DeadLetter): void {
    strike();
    void place?.then((written) => (written === null ? undefined : this.spill!.strike([written])));
  }

  async close(): Promise<void> {
    await this.spill?.close();
  }
}
