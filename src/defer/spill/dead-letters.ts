import { within } from '../../core/within.js';
import type { DurableEntry } from '../durable/durable-entry.js';
import { countBytes, fromJson } from '../outbox/json.js';
import type { ProcessFolder } from './process-folder.js';
import type { Place, Taken } from './segment.js';
import { Spill, type SpillLimits } from './spill.js';

/** More letters, or more of their data as JSON, and the oldest makes room. */
export const MAX_LETTERS = 1_000;
const MAX_BYTES = 16 * 1024 * 1024;
/** Upper limit of their files, with what is struck off in them. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;
/** Read at a time, of what another process has left. */
const PAGE = 100;
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

/** Which of them, from the oldest on; a negative offset counts from the newest. */
export interface DeadLetterPage {
  readonly offset: number;
  readonly limit: number;
}

export interface DeadLetter extends DurableEntry {
  readonly error: string;
  readonly rejectedAt: number;
}

/** A dead letter in memory, and its place on disk where there is one. */
export interface Buried {
  readonly letter: DeadLetter;
  readonly place: Place | null;
}

/** Work that its store has refused for good: in memory, to be read and sent again, and on disk where there is one. */
export class DeadLetters {
  private held: Buried[] = [];
  private bytes = 0;
  private pending: Promise<unknown> = Promise.resolve();
  private isReading = false;

  private readonly disk: Spill | null;

  constructor(
    folder: ProcessFolder | null,
    limits: Pick<SpillLimits, 'writeTimeoutMs'>,
    private readonly report: (cause: string, message: string) => void,
  ) {
    const lost = (): void => {
      this.held = [];
      this.bytes = 0;
    };
    const events = { report, lost, found: () => {}, damaged: () => {} };
    this.disk = folder && new Spill(folder, 'dead', { ...limits, maxBytes: MAX_FILE_BYTES }, events);
  }

  /** Keeps one; `onDisk` is called when it is on disk. */
  async add(letter: DeadLetter, onDisk: () => void = () => {}): Promise<void> {
    const adding = async (): Promise<void> => {
      const place = (await this.disk?.append(letter)) ?? null;
      this.putBack([{ letter, place }]);
      if (place !== null) onDisk();
    };
    await this.waitFor(adding());
  }

  /** Reads the files of processes that are gone, and those that could not be read before. */
  adopt(files: readonly string[]): void {
    this.disk?.adopt(files);
    if (this.disk?.parked !== true || this.isReading) return;
    this.isReading = true;
    const read = this.readAdopted().catch(() => {});
    void this.waitFor(read.finally(() => (this.isReading = false)));
  }

  /** Readers wait for it, up to 5 s. */
  waitFor(more: Promise<unknown>): Promise<unknown> {
    return (this.pending = Promise.all([this.pending, more]).then(() => {}));
  }

  private async settled(): Promise<void> {
    let pending;
    while (pending !== this.pending) await (pending = this.pending);
  }

  private async readAdopted(): Promise<void> {
    while (this.disk?.parked) this.putBack((await this.disk.takeParked(PAGE)).map(toBuried));
    this.held.sort((a, b) => a.letter.rejectedAt - b.letter.rejectedAt);
  }

  async list({ offset, limit }: DeadLetterPage): Promise<RejectedWork[]> {
    await within(SETTLE_MS, () => this.settled());
    const page = this.held.slice(offset).slice(0, limit);
    return page.map(({ letter: { id, name, json, error, rejectedAt } }) => {
      return { id, name, data: fromJson(json), error, rejectedAt };
    });
  }

  /** Takes those with these ids out, all without ids, up to `limit`: no other caller gets them. Then `strike` or `putBack`. */
  async take(ids: readonly string[] | undefined, limit: number): Promise<Buried[]> {
    await within(SETTLE_MS, () => this.settled());
    const wanted = ids && new Set(ids);
    const taken = this.held.filter(({ letter }) => wanted?.has(letter.id) !== false).slice(0, limit);
    const all = new Set(taken);
    this.held = this.held.filter((one) => !all.has(one));
    for (const { letter } of taken) this.bytes -= countBytes(letter.json);
    return taken;
  }

  putBack(letters: readonly Buried[]): void {
    for (const one of letters) {
      this.held.push(one);
      this.bytes += countBytes(one.letter.json);
    }
    const isOver = (): boolean => this.held.length > MAX_LETTERS || (this.bytes > MAX_BYTES && this.held.length > 1);
    while (isOver()) {
      const oldest = this.held.shift()!;
      this.bytes -= countBytes(oldest.letter.json);
      this.strike([oldest]);
      const cause = `more than ${MAX_LETTERS} dead letters of durable work, or 16 MiB`;
      this.report(
        cause,
        `${cause}: the oldest, "${oldest.letter.name}", was let go. Look at them: \`deferrer.rejected()\`.`,
      );
    }
  }

  strike(letters: readonly Buried[]): void {
    this.disk?.strike(letters.flatMap(({ place }) => place ?? []));
  }

  async close(): Promise<void> {
    await this.settled();
    await this.disk?.close();
  }
}

function toBuried({ entry, place }: Taken): Buried {
  const { error = '', rejectedAt = 0 } = entry;
  return { letter: { ...entry, error, rejectedAt }, place };
}
