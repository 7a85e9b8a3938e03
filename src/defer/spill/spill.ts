import { resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { inRootContext } from '../../core/root-context.js';
import { reasonOf } from '../../core/reason.js';
import { within } from '../../core/within.js';
import type { DurableEntry } from '../durable/durable-entry.js';
import type { SpillOptions } from '../durable/durable-store.js';
import { DeadLetters } from './dead-letters.js';
import { ProcessFolder } from './process-folder.js';
import { Segment, type Place, type TakenBack } from './segment.js';

/** Write timeout of a store that sets none, milliseconds. */
const WRITE_TIMEOUT_MS = 5_000;
const SEGMENT_BYTES = 8 * 1024 * 1024;
/** How often it looks for what processes that are gone have left, milliseconds. */
const ADOPT_MS = 5_000;
const NOTHING: TakenBack = { taken: [], damagedLines: 0 };

/** Callbacks of the spill to its outbox. */
export interface SpillEvents {
  report(cause: string, message: string): void;
  /** Entries of other processes that are parked here now. */
  found(entries: number): void;
  /** Parked entries that another process has now. */
  lost(entries: number): void;
}

/**
 * Durable work on disk until its store has it, in the folder of this process: segments, each deleted whole once all of its
 * entries are struck off. Entries that arrive together share one write and one fdatasync.
 */
export class Spill {
  readonly dead: DeadLetters;
  private readonly folder: ProcessFolder;
  private readonly root: string;
  private segments: Segment[] = [];
  private active: Segment | null = null;
  /** Segments that others have left: opened, and read, one after the other. */
  private unread: string[] = [];
  private joining: { readonly entries: DurableEntry[]; readonly written: Promise<Place[]> } | null = null;
  private sweeping = false;
  /** The last write has failed. */
  private failed = false;
  /** A write has taken longer than `writeTimeoutMs`, and is not over: none is begun behind it. */
  private stuck = false;
  private closed = false;
  private last: Promise<unknown> = Promise.resolve();
  private adopting: NodeJS.Timeout | undefined;

  constructor(
    private readonly options: SpillOptions,
    private readonly events: SpillEvents,
  ) {
    this.root = resolve(options.path);
    const report: SpillEvents['report'] = (cause, message) => events.report(cause, message);
    this.folder = new ProcessFolder(this.root, report);
    this.dead = new DeadLetters(this.folder, report);
  }

  /** How many entries are neither stored nor discarded, of those that were read. */
  get entries(): number {
    return this.segments.reduce((sum, { outstanding }) => sum + outstanding, 0);
  }

  /** Files of other processes that were not read yet. */
  get unreadFiles(): number {
    return this.unread.length;
  }

  /** The disk has not taken the last entry, or it holds what it may hold. */
  get refuses(): boolean {
    return this.stuck || this.failed || this.heldBytes >= this.options.maxBytes;
  }

  private get heldBytes(): number {
    return this.segments.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  get parked(): boolean {
    return this.unread.length > 0 || this.segments.some(({ parked }) => parked > 0);
  }

  /** Reads no entry: how many there are has no part in how long it takes. @throws PERF_ERR_STORE when the disk refuses */
  async open(): Promise<void> {
    await this.folder.open();
  }

  /** Takes over what processes that are gone have left, now and from time to time. Never rejects. */
  async adopt(onFound: () => void): Promise<void> {
    try {
      const { work, dead } = await this.folder.adopt();
      this.unread.push(...work);
      this.dead.adopt(dead);
      if (work.length > 0) onFound();
    } catch (error) {
      this.reportTrouble('look for what other processes have left', error);
    }
    if (this.closed) return;
    const again = (): void => void this.adopt(onFound);
    this.adopting = inRootContext(() => setTimeout(again, ADOPT_MS)).unref();
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
    const writing = this.onDisk('write', async () => {
      // Entries that other requests append in this turn join the same write.
      await nextTurn();
      this.joining = null;
      return this.writeEntries(entries);
    });
    return { entries, written: this.inTime(writing) };
  }

  private async writeEntries(entries: readonly DurableEntry[]): Promise<Place[]> {
    const segment = await this.findWritable();
    const places = await segment.append(entries);
    if (await this.folder.isOurs()) return places;
    // The process that has taken the folder over may have read it before this write.
    await this.startAnew();
    return (await this.findWritable()).append(entries);
  }

  /** The places that are written within `writeTimeoutMs`: none after that, and a late entry is struck off again. */
  private async inTime(writing: Promise<Place[]>): Promise<Place[]> {
    const { writeTimeoutMs = WRITE_TIMEOUT_MS } = this.options;
    let places: Place[] = [];
    const settled = writing.then(
      (written) => {
        places = written;
        this.failed = false;
      },
      () => void (this.failed = true),
    );
    // In two halves: after an event loop that stood still, the disk has its time all the same.
    const half = (): Promise<boolean> => within(writeTimeoutMs / 2, () => settled);
    if ((await half()) || (await half())) return places;
    this.stuck = true;
    // Entries that arrive meanwhile must not wait with those that have waited.
    this.joining = null;
    this.reportTrouble('write', new Error(`the disk has not answered within ${writeTimeoutMs} ms`));
    void settled.then(() => {
      this.stuck = false;
      this.strike(places);
    });
    return [];
  }

  private async startAnew(): Promise<void> {
    await this.folder.renew();
    const gone = this.segments.splice(0);
    this.active = null;
    this.unread = [];
    this.dead.lose();
    this.events.lost(gone.reduce((sum, { parked }) => sum + parked, 0));
    for (const segment of gone) {
      segment.lost = true;
      await segment.close();
    }
  }

  /** Forgets entries: they are stored, or need not run. */
  strike(places: readonly Place[]): void {
    for (const { segment, offset } of places) segment.strike(offset);
    if (this.sweeping || this.closed) return;
    this.sweeping = true;
    void this.sweep();
  }

  park({ segment, offset }: Place): void {
    segment.park(offset);
  }

  /** Brings up to `limit` parked entries back, oldest first. Rejects when the disk cannot be read: they stay parked. */
  async takeParked(limit: number): Promise<TakenBack> {
    try {
      const segment = this.segments.find(({ parked }) => parked > 0) ?? (await this.openUnread());
      if (segment === null || segment.parked === 0) return NOTHING;
      const back = await segment.takeParked(limit);
      if (back.damagedLines > 0) {
        const cause = `the spill file ${segment.path} holds damaged lines`;
        this.events.report(cause, `${cause}: ${back.damagedLines} were skipped, the others are sent. It is kept.`);
        // A file with nothing else left in it is put aside now.
        this.strike([]);
      }
      return back;
    } catch (error) {
      this.reportTrouble('read', error);
      throw error;
    }
  }

  private async openUnread(): Promise<Segment | null> {
    const path = this.unread[0];
    if (path === undefined) return null;
    try {
      const segment = await Segment.reopen(path);
      this.segments.push(segment);
      this.events.found(segment.parked);
      if (segment.parked === 0) this.strike([]);
      return segment;
    } finally {
      this.unread = this.unread.filter((other) => other !== path);
    }
  }

  /** Strikes an entry off that the store will never take, once it is a dead letter. Else it is sent at the next start. */
  async bury(entry: DurableEntry, place: Place, error: string): Promise<void> {
    if (await this.dead.add({ ...entry, error, rejectedAt: Date.now() })) this.strike([place]);
  }

  async close(deadlineMs: number): Promise<void> {
    const closing = async (): Promise<void> => {
      clearTimeout(this.adopting);
      // The entry of the last dead letter is struck off then.
      await this.dead.settled();
      this.closed = true;
      await this.last;
      await this.sweep();
      for (const segment of this.segments.splice(0)) await segment.close();
      await this.dead.close();
      await this.folder.release();
    };
    if (await within(deadlineMs, closing)) return;
    this.closed = true;
    this.reportTrouble('close', new Error(`the disk has not answered within ${deadlineMs} ms`));
  }

  /** One write after the other. What the disk refuses is reported. */
  private onDisk<T>(step: string, work: () => Promise<T>): Promise<T> {
    const turn = this.last.then(work);
    this.last = turn.catch((error: unknown) => this.reportTrouble(step, error));
    return turn;
  }

  private reportTrouble(step: string, error: unknown): void {
    const cause = `spill: could not ${step}: ${(error as NodeJS.ErrnoException).code ?? reasonOf(error)}`;
    this.events.report(cause, `${cause}. New durable work is not on disk until it can; what is there stays there.`);
  }

  /** Writes down what was struck off, and removes what is done with. */
  private async sweep(): Promise<void> {
    const sweeping = this.onDisk('strike off', async () => {
      await nextTurn();
      this.sweeping = false;
      // First what needs no room: the disk may be full of it.
      await this.removeFinished();
      await this.emptyActive();
      for (const segment of this.segments) await segment.writeStrikes();
    });
    await sweeping.catch(() => {});
  }

  /** The segment that is written to; a new one when there is none, when it is full, and behind a torn end. */
  private async findWritable(): Promise<Segment> {
    const { active, heldBytes } = this;
    if (active !== null && !active.torn && active.bytes < SEGMENT_BYTES && heldBytes < this.options.maxBytes)
      return active;
    if (heldBytes >= this.options.maxBytes) throw new Error(`it holds ${heldBytes} bytes already (spillMaxBytes)`);
    if (!(await this.folder.isOurs())) await this.startAnew();
    const segment = await Segment.create(this.folder.nextFile('work'));
    this.segments.push(segment);
    this.active = segment;
    await this.folder.sync();
    return segment;
  }

  /** The next entry needs no file of its own. */
  private async emptyActive(): Promise<void> {
    const { active } = this;
    if (active === null || active.outstanding > 0 || active.bytes === 0) return;
    const empty = await active.reset();
    this.segments = this.segments.map((segment) => (segment === active ? empty : segment));
    this.active = empty;
  }

  /** The active one stays. */
  private async removeFinished(withActive = this.closed): Promise<void> {
    for (const segment of this.segments.filter(({ outstanding }) => outstanding === 0)) {
      if (segment === this.active && !withActive && segment.damagedLines === 0) continue;
      this.segments = this.segments.filter((other) => other !== segment);
      if (this.active === segment) this.active = null;
      if (segment.damagedLines === 0) await segment.remove();
      else {
        await segment.close();
        await this.folder.setAside(segment.path);
      }
    }
  }
}
