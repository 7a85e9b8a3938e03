import { PerfError } from '../../core/perf.error.js';
import { reasonOf } from '../../core/reason.js';
import { within } from '../../core/within.js';
import type { DurableEntry } from '../durable/durable-entry.js';
import type { ProcessFolder } from './process-folder.js';
import { Segment, type Place } from './segment.js';

/** A file has up to 1,000 letters or 1 MiB; beyond 64 files or 64 MiB the oldest one makes room. */
const MAX_FILES = 64;
const MAX_LETTERS = 1_000;
const MAX_BYTES = 1024 * 1024;
/** Read at a time. */
const PAGE = 100;
/** Upper limit of a read's wait for a disk that does not answer, milliseconds. */
const READ_MS = 5_000;

export interface DeadLetter extends DurableEntry {
  readonly error: string;
  /** Epoch milliseconds. */
  readonly rejectedAt: number;
}

export interface Buried {
  readonly letter: DeadLetter;
  readonly place: Place;
}

/** Entries that a store has refused for good, on disk until they are sent again. Durable work on its way never waits for them. */
export class DeadLetters {
  private files: Segment[] = [];
  private unread: string[] = [];
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly folder: ProcessFolder,
    private readonly report: (cause: string, message: string) => void,
  ) {}

  /** Files of processes that are gone. They are read when somebody looks, or a letter comes. */
  adopt(files: readonly string[]): void {
    this.unread.push(...files);
  }

  /** False, and reported, when the disk refuses it. */
  async add(letter: DeadLetter): Promise<boolean> {
    const added = this.onDisk(async () => {
      const file = await this.findWritable();
      for (const { offset } of await file.append([letter])) file.park(offset);
      await this.makeRoom();
    });
    return await added.then(
      () => true,
      (error: unknown) => {
        const cause = `a dead letter, "${letter.name}", could not be written: ${reasonOf(error)}`;
        this.report(cause, `${cause}. It stays in the spill, and is sent again at the next start.`);
        return false;
      },
    );
  }

  /** Oldest first; a negative offset counts from the newest. Reads these alone. @throws PERF_ERR_STORE when the disk does not answer */
  read({ offset, limit }: { readonly offset: number; readonly limit: number }): Promise<DeadLetter[]> {
    return this.inTime(async () => {
      const letters: DeadLetter[] = [];
      const total = this.files.reduce((sum, { parked }) => sum + parked, 0);
      let skip = offset < 0 ? Math.max(0, total + offset) : offset;
      for (const file of this.files) {
        if (letters.length >= limit) break;
        const { parked } = file;
        if (skip < parked) letters.push(...(await this.readFile(file, skip, limit - letters.length)).map(toLetter));
        skip = Math.max(0, skip - parked);
      }
      return letters;
    });
  }

  /** Takes those with these ids out, all without ids, up to `limit`: nobody else gets them. Then `strike` or `putBack`. */
  take(ids: ReadonlySet<string> | null, limit: number): Promise<Buried[]> {
    return this.inTime(async () => {
      const buried: Buried[] = [];
      for (const file of this.files) {
        for (let skip = 0; skip < file.parked && buried.length < limit;) {
          const before = file.parked;
          const page = await this.readFile(file, skip, Math.min(PAGE, limit - buried.length));
          const wanted = page.filter(({ letter }) => ids?.has(letter.id) !== false);
          for (const { place } of wanted) file.take(place.offset);
          buried.push(...wanted);
          skip += before === file.parked && page.length === 0 ? 1 : page.length - wanted.length;
        }
      }
      return buried;
    });
  }

  putBack(buried: readonly Buried[]): void {
    for (const { place } of buried) place.segment.park(place.offset);
  }

  /** They are on their way again, and on disk elsewhere. */
  async strike(buried: readonly Buried[]): Promise<void> {
    for (const { place } of buried) place.segment.strike(place.offset);
    await this.onDisk(() => this.writeStrikes()).catch((error: unknown) => {
      const cause = `dead letters could not be struck off: ${reasonOf(error)}`;
      this.report(cause, `${cause}. After a restart they are dead letters again.`);
    });
  }

  /** Another process has the files. */
  lose(): void {
    this.unread = [];
    for (const file of this.files.splice(0)) {
      file.lost = true;
      file.close().catch(() => {});
    }
  }

  settled(): Promise<unknown> {
    return this.last;
  }

  async close(): Promise<void> {
    await this.writeStrikes().catch(() => {});
    for (const file of this.files.splice(0)) await file.close();
  }

  private async readFile(file: Segment, skip: number, limit: number): Promise<Buried[]> {
    const { read, damagedLines } = await file.readParked(skip, limit);
    if (damagedLines > 0) this.report('damaged dead letters', `${file.path} holds damaged lines: ${damagedLines}.`);
    return read.map(({ entry: { error = '', rejectedAt = 0, ...entry }, place }) => {
      return { letter: { ...entry, error, rejectedAt }, place };
    });
  }

  private async writeStrikes(): Promise<void> {
    for (const file of this.files) {
      if (file.outstanding > 0) await file.writeStrikes();
      else await this.remove(file);
    }
  }

  private async remove(file: Segment): Promise<void> {
    this.files = this.files.filter((other) => other !== file);
    await file.remove();
  }

  private async findWritable(): Promise<Segment> {
    const file = this.files.at(-1);
    if (file !== undefined && !file.torn && file.outstanding < MAX_LETTERS && file.bytes < MAX_BYTES) return file;
    const made = await Segment.create(this.folder.nextFile('dead'));
    this.files.push(made);
    await this.folder.sync();
    return made;
  }

  private async makeRoom(): Promise<void> {
    const isOver = (): boolean => {
      const bytes = this.files.reduce((sum, file) => sum + file.bytes, 0);
      return this.files.length > MAX_FILES || (bytes > MAX_FILES * MAX_BYTES && this.files.length > 1);
    };
    while (isOver()) {
      const [oldest] = this.files;
      const cause = 'there are more dead letters of durable work than are kept';
      this.report(cause, `${cause}: the oldest ${oldest!.parked} were let go. Look at them: \`deferrer.rejected()\`.`);
      await this.remove(oldest!);
    }
  }

  private async readUnread(): Promise<void> {
    for (const path of this.unread.splice(0)) {
      try {
        this.files.unshift(await Segment.reopen(path));
      } catch (error) {
        const cause = `dead letters in ${path} cannot be read: ${reasonOf(error)}`;
        this.report(cause, `${cause}.`);
      }
    }
  }

  private onDisk<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.last.then(() => this.readUnread()).then(work);
    this.last = turn.catch(() => {});
    return turn;
  }

  private async inTime<T>(work: () => Promise<T>): Promise<T> {
    let result: T;
    const isDone = await within(READ_MS, async () => (result = await this.onDisk(work)));
    if (isDone) return result!;
    throw new PerfError('PERF_ERR_STORE', `the disk of \`spillPath\` has not answered within ${READ_MS} ms.`);
  }
}

const toLetter = ({ letter }: Buried): DeadLetter => letter;
