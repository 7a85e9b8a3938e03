import { setImmediate as nextTurn } from 'node:timers/promises';
import { describeReason } from '../../core/reason.js';
import { within } from '../../core/within.js';
import type { Counters } from '../counters.js';
import type { SpillOptions } from '../durable/durable-store.js';
import type { DurableEntry } from '../durable/entry.js';
import type { FileKind, ProcessFolder } from './process-folder.js';
import { Segment, type Place, type Taken } from './segment.js';

/** Write timeout of a store that sets none, milliseconds. */
const WRITE_TIMEOUT_MS = 5_000;
/** Wait before a write is tried again for work that has no room in memory, milliseconds. */
const TRY_AGAIN_MS = 1_000;
const SEGMENT_BYTES = 8 * 1024 * 1024;
/** A smaller segment is used on when all of it is struck off: a new file for each entry costs several syncs. */
const REUSED_BYTES = 1024 * 1024;
/** After these errors a file is opened again later; after any other it is passed over, as no file of this library. */
const PASSING = /^(EMFILE|ENFILE|ENOMEM|EIO|ESTALE)$/;

/**
 * Entries on disk until they are struck off, in the folder of this process: segments, each deleted whole once all of its
 * entries are struck off. Entries that arrive together share one write and one fdatasync.
 */
export class Spill {
  private segments: Segment[] = [];
  private active: Segment | null = null;
  /** Paths of files of other processes: opened and read one after the other, when memory has room. */
  private unread: string[] = [];
  /** The next write, until it begins: later entries join it. */
  private joining: { readonly entries: DurableEntry[]; readonly written: Promise<Place[]> } | null = null;
  /** A sweep is due: one is enough for all that was struck off. */
  private sweeping = false;
  /** When the last write has failed, monotonic milliseconds; null when it has not. */
  private failedMs: number | null = null;
  /** A write has exceeded `writeTimeoutMs`, and has not ended: none is begun behind it. */
  private stuck = false;
  private closed = false;

  constructor(
    private readonly folder: ProcessFolder,
    private readonly limits: Pick<SpillOptions, 'maxBytes' | 'writeTimeoutMs'>,
    private readonly counters: Pick<Counters, 'move'>,
    private readonly report: (cause: string, message: string) => void,
    private readonly kind: FileKind = 'work',
  ) {}

  /** Entries that are not struck off; those in unread files are not included. */
  get entries(): number {
    return this.segments.reduce((sum, { outstanding }) => sum + outstanding, 0);
  }

  get unreadFiles(): number {
    return this.unread.length;
  }

  /** The disk has just refused a write or is late with it, or the spill is full. A refusal holds for a second: only the next write shows whether the disk has room again. */
  get refuses(): boolean {
    const hasFailed = this.failedMs !== null && performance.now() - this.failedMs < TRY_AGAIN_MS;
    return this.stuck || hasFailed || this.fileBytes >= this.limits.maxBytes;
  }

  private get fileBytes(): number {
    return this.segments.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Entries are on disk that memory does not have. */
  get hasParked(): boolean {
    return this.unread.length > 0 || this.segments.some(({ parked }) => parked > 0);
  }

  adopt(files: readonly string[]): void {
    this.unread.push(...files);
  }

  /** Resolves when the entry is on disk, with its place; null when the disk refuses it or is late, which is reported, or it is closed. */
  async append(entry: DurableEntry): Promise<Place | null> {
    if (this.closed || this.stuck) return null;
    const { entries, written } = (this.joining ??= this.startWrite());
    const at = entries.push(entry) - 1;
    return (await written)[at] ?? null;
  }

  private startWrite() {
    const entries: DurableEntry[] = [];
    const writing = this.runInOrder('write', async () => {
      // Entries that other requests append in this turn join the same write.
      await nextTurn();
      this.joining = null;
      for (;;) {
        const places = await (await this.findWritable()).append(entries, this.folder);
        if (places !== null) return places;
        this.giveUpSegments();
      }
    });
    return { entries, written: this.awaitPlaces(writing) };
  }

  /** Resolves with none after `writeTimeoutMs`: their requests were answered as if the disk had refused, so late entries are struck off. */
  private async awaitPlaces(writing: Promise<Place[]>): Promise<Place[]> {
    const { writeTimeoutMs = WRITE_TIMEOUT_MS } = this.limits;
    let places: Place[] = [];
    const settled = writing.then(
      (written) => {
        places = written;
        this.failedMs = null;
      },
      () => void (this.failedMs = performance.now()),
    );
    // In two halves: when the loop was blocked, the first timer ends before the disk's answer is read.
    const half = (): Promise<boolean> => within(writeTimeoutMs / 2, () => settled);
    if ((await half()) || (await half())) return places;
    this.stuck = true;
    // Later entries must not join a write that hangs.
    this.joining = null;
    this.reportTrouble('write', new Error(`the disk has not answered within ${writeTimeoutMs} ms`));
    void settled.then(() => {
      this.stuck = false;
      this.strike(places);
    });
    return [];
  }

  /** Strikes entries off: they are stored, or need not run. */
  strike(places: readonly Place[]): void {
    for (const { segment, offset } of places) segment.strike(offset);
    if (this.sweeping || this.closed) return;
    this.sweeping = true;
    void this.sweep();
  }

  /** Takes the parked entries of one segment, for one caller at a time. Rejects when the disk cannot be read: they stay parked. */
  async takeParked(): Promise<Taken[]> {
    try {
      const segment = this.segments.find(({ parked }) => parked > 0) ?? (await this.openUnread());
      if (segment === null) return [];
      const { taken, damaged } = await segment.takeParked(this.folder);
      if (damaged > 0) this.passOver(segment, damaged);
      return taken;
    } catch (error) {
      this.reportTrouble('read', error);
      throw error;
    }
  }

  private async openUnread(): Promise<Segment | null> {
    const path = this.unread[0];
    if (path === undefined) return null;
    let isPutOff = false;
    try {
      const segment = await this.folder.inOrder(() => Segment.reopen(path));
      this.segments.push(segment);
      this.counters.move(null, 'buffered', segment.parked);
      if (segment.parked === 0) this.strike([]);
      return segment;
    } catch (error) {
      isPutOff = PASSING.test(String((error as NodeJS.ErrnoException).code));
      throw error;
    } finally {
      const others = this.unread.filter((other) => other !== path);
      this.unread = isPutOff ? [...others, path] : others;
    }
  }

  private passOver({ path, outstanding }: Segment, damaged: number): void {
    this.counters.move('buffered', 'dropped', damaged);
    const cause = `${path} holds damaged lines`;
    this.report(cause, `${cause}: they are passed over, the others are sent. The file is kept.`);
    if (outstanding === 0) this.strike([]);
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.sweep();
    for (const segment of this.segments.splice(0)) await segment.close();
  }

  /** Another process has taken over all files, and sends what is in them. */
  private giveUpSegments(): void {
    const gone = this.segments.splice(0);
    this.active = null;
    this.unread = [];
    const parked = gone.reduce((sum, segment) => sum + segment.parked, 0);
    this.counters.move('buffered', 'stored', parked);
    for (const segment of gone) {
      segment.lost = true;
      this.folder.inOrder(() => segment.close()).catch(() => {});
    }
  }

  /** Reports what the disk refuses. */
  private runInOrder<T>(step: string, work: () => Promise<T>): Promise<T> {
    const turn = this.folder.inOrder(work);
    turn.catch((error: unknown) => this.reportTrouble(step, error));
    return turn;
  }

  private reportTrouble(step: string, error: unknown): void {
    const cause = `spill: could not ${step}: ${(error as NodeJS.ErrnoException).code ?? describeReason(error)}`;
    this.report(
      cause,
      `${cause}. Until that works again, no new durable work is on disk; entries that are there stay.`,
    );
  }

  /** Writes strikes to their files, and deletes files of which everything is struck off. */
  private async sweep(): Promise<void> {
    const sweeping = this.runInOrder('strike off', async () => {
      await nextTurn();
      this.sweeping = false;
      // Deletes first: the disk may be full.
      for (const segment of this.segments) if (!this.isNeeded(segment)) await this.remove(segment);
      for (const segment of this.segments) {
        const { outstanding } = segment;
        await segment.writeStrikes().catch((error) => (outstanding > 0 ? Promise.reject(error) : this.remove(segment)));
      }
    });
    await sweeping.catch(() => {});
  }

  private isNeeded(segment: Segment): boolean {
    if (segment.outstanding > 0) return true;
    const isWrittenOn = segment === this.active && segment.bytes < REUSED_BYTES && segment.damagedLines === 0;
    return isWrittenOn && !this.closed && this.failedMs === null && !this.refuses;
  }

  private async remove(segment: Segment): Promise<void> {
    this.segments = this.segments.filter((other) => other !== segment);
    if (segment === this.active) this.active = null;
    await segment.remove();
  }

  /** Opens a new segment when there is none, and when the active one is full or ends in a torn write. */
  private async findWritable(): Promise<Segment> {
    const { active, fileBytes, limits } = this;
    if (fileBytes >= limits.maxBytes) throw new Error(`it holds ${fileBytes} bytes already (spillMaxBytes)`);
    if (active !== null && !active.torn && active.bytes < SEGMENT_BYTES) return active;
    let path = this.folder.nextFile(this.kind);
    if (!(await this.folder.owns(path))) {
      this.giveUpSegments();
      path = this.folder.nextFile(this.kind);
    }
    const segment = await Segment.create(path);
    this.segments.push(segment);
    this.active = segment;
    await this.folder.sync();
    return segment;
  }
}
