import { PerfError } from '../../core/perf.error.js';
import { reasonOf } from '../../core/reason.js';
import type { Capacity } from '../capacity.js';
import { unstarted } from '../counters.js';
import type { DeferWhen } from '../deferred-work.js';
import { bytesOf, fromJson } from '../outbox/json.js';
import { Outbox, OutboxItem, type OutboxShared } from '../outbox/outbox.js';
import type { RejectedWork } from '../outbox/rejects.js';
import type { Armed } from '../request-work.js';
import type { Place } from '../spill/segment.js';
import { Spill } from '../spill/spill.js';
import { jobOf, type DurableEntry } from './durable-entry.js';
import type { DurableStore, DurableStoreHost } from './durable-store.js';

/** Parked entries that are brought back at a time. */
const TAKE_BACK = 500;
/** When the disk could not be read, it is asked again so much later, milliseconds. */
const READ_AGAIN_MS = 1_000;

type Item = OutboxItem<DurableEntry>;

/**
 * Durable work on its way to the store. With a spill, it is on disk before it is taken over, and what memory has no room
 * for stays there until there is; so does what an earlier process has left.
 */
export class DurableOutbox extends Outbox<DurableEntry> {
  protected readonly what = 'durable work';
  protected readonly durable = true;
  private readonly spill: Spill | null;
  private readonly writing = new Set<Promise<unknown>>();
  private takingBack = false;

  constructor(
    private readonly target: DurableStore,
    capacity: Capacity,
    shared: OutboxShared,
  ) {
    super(capacity, shared);
    this.spill = target.spill ? new Spill(target.spill) : null;
    if (this.spill !== null) capacity.onReleased = () => this.takeBack();
  }

  /** Prepared data must be on disk before the response goes on, and needs no room in memory. */
  get hasDisk(): boolean {
    return this.spill !== null;
  }

  /** How much is on disk and nowhere else, once it is closed. */
  get onDisk(): number {
    return this.spill?.entries ?? 0;
  }

  /** Nothing of this is counted while it is being written. */
  get isWriting(): boolean {
    return this.writing.size > 0;
  }

  async written(): Promise<void> {
    await Promise.allSettled(this.writing);
  }

  /** Opens the store, and the spill: what an earlier process has left in it is sent. `host` is what the store may ask. */
  async start(host: DurableStoreHost): Promise<void> {
    try {
      await this.target.start(host);
      await this.openSpill();
    } catch (error) {
      // A boot that fails must not keep the process alive.
      await this.stopWorker(0);
      await this.closeStore();
      throw error;
    }
  }

  /** Every module is initialised: jobs may run. */
  startWorker(): void {
    this.target.startWorker?.();
  }

  /** The application begins to close: this process takes no durable work from its store any more. */
  async pauseWorker(): Promise<void> {
    await this.ask('pause its worker', () => this.target.pauseWorker?.());
  }

  async stopWorker(deadlineMs: number): Promise<void> {
    await this.ask('stop its worker', () => this.target.stopWorker(deadlineMs));
  }

  async closeStore(): Promise<void> {
    await this.ask('close', () => this.target.close());
    await this.ask('close its spill', () => this.spill?.close());
  }

  private async ask(step: string, store: () => Promise<void> | undefined): Promise<void> {
    try {
      await store();
    } catch (error) {
      const cause = `store "${this.target.name}" failed to ${step}`;
      this.shared.report(cause, `${cause}: ${reasonOf(error)}`);
    }
  }

  private async openSpill(): Promise<void> {
    const left = (await this.spill?.open((cause, message) => this.shared.report(cause, message))) ?? 0;
    if (left === 0) return;
    this.shared.counters.move(null, 'buffered', left);
    this.takeBack();
  }

  /**
   * Null when the policy drops it. With a spill a promise: it resolves when the entry is on disk.
   * @param reserved it has its place in memory already
   * @throws PERF_ERR_DEFER_FULL with `'reject'`
   */
  arm(entry: DurableEntry, when: DeferWhen | null, reserved: boolean): Armed | null | Promise<Armed | null> {
    return this.spill === null ? this.armInMemory(entry, when, reserved) : this.armOnDisk(this.spill, entry, when);
  }

  private armInMemory(entry: DurableEntry, when: DeferWhen | null, reserved = false): Armed | null {
    const { capacity } = this;
    const bytes = bytesOf(entry.json);
    if (reserved) capacity.fill(bytes, 0);
    else if (!capacity.takeFor(entry.name, () => this.dropOldest(), bytes)) {
      this.shared.counters.drop(null, unstarted(entry.name, entry, true), capacity.whyFull);
      return null;
    }
    return new OutboxItem(this, entry, when);
  }

  private async armOnDisk(spill: Spill, entry: DurableEntry, when: DeferWhen | null): Promise<Armed | null> {
    const place = await this.write(spill, entry);
    if (place === null) return this.armInMemory(entry, when);
    if (this.capacity.take(bytesOf(entry.json))) return new OutboxItem(this, entry, when, place);
    return { when, commit: () => this.park(place), discard: () => spill.strike([place]) };
  }

  /**
   * Durable work, now: resolves when it is on disk or in the store. Rejects when the store refuses it for good, and when
   * the application closes before.
   * @throws PERF_ERR_DEFER_FULL, PERF_ERR_STORE
   */
  async enqueue(entry: DurableEntry): Promise<void> {
    const { capacity, spill } = this;
    if (this.closed)
      throw new PerfError('PERF_ERR_STORE', `"${entry.name}" cannot be stored: the application has closed.`);
    const bytes = bytesOf(entry.json);
    const place = spill === null ? null : await this.write(spill, entry);
    const hasRoom = capacity.take(bytes);
    if (place !== null) {
      if (hasRoom) this.add(new OutboxItem(this, entry, null, place));
      else this.park(place);
      return;
    }
    if (!hasRoom) throw capacity.deferFullError(entry.name);
    await new Promise<void>((resolve, reject) => {
      const ended = (error: Error | null): void => (error === null ? resolve() : reject(error));
      this.add(new OutboxItem(this, entry, null, null, ended));
    });
  }

  /** What the store has refused for good and is on disk, oldest first. */
  async rejected(): Promise<RejectedWork[]> {
    const entries = (await this.spill?.rejected()) ?? [];
    return entries.map(({ id, name, json, error, rejectedAt }) => {
      return { id, name, data: fromJson(json), error, rejectedAt };
    });
  }

  /** Sends those of them with these ids again, all without ids; returns how many there was room for. */
  async resend(ids: readonly string[] | undefined): Promise<number> {
    const { spill } = this;
    if (spill === null) return 0;
    const again: string[] = [];
    for (const { error: _, rejectedAt: __, ...entry } of await spill.rejected()) {
      if (ids?.includes(entry.id) === false) continue;
      const bytes = bytesOf(entry.json);
      if (!this.capacity.take(bytes)) break;
      // On disk before it leaves the rejects: a crash in between sends it twice, under one id.
      const place = await spill.append(entry);
      if (place === null) {
        this.capacity.release(bytes);
        break;
      }
      again.push(entry.id);
      this.add(new OutboxItem(this, entry, null, place));
    }
    if (again.length > 0) await spill.forgetRejected(again);
    return again.length;
  }

  protected override laneOf({ together, work, name, timeoutMs, attempts, options }: DurableEntry) {
    // A bulk is of one queue; items that travel in one job share its options.
    if (together === null) return { key: options.queue ?? '', limits: null };
    const { maxItems: maxJobs, maxWaitMs } = together;
    const key = JSON.stringify([work, name, timeoutMs, attempts, options, together]);
    return { key, limits: { maxJobs, maxWaitMs, maxItemsASend: maxJobs } };
  }

  protected override store(items: readonly Item[]): Promise<unknown> {
    const jobs = items.map(({ parcel, status }) => jobOf(parcel, status));
    return this.target.add(jobs, { envelope: items[0]!.parcel.together !== null });
  }

  protected override strike(places: readonly Place[]): void {
    this.spill?.strike(places);
  }

  protected override reject(item: Item, error: string): void {
    if (item.place === null) super.reject(item, error);
    else void this.spill?.reject(item.parcel, item.place, error);
  }

  private write(spill: Spill, entry: DurableEntry): Promise<Place | null> {
    const writing = spill.append(entry);
    // In the next turn whoever waits for it has counted it.
    const counted = writing.then(() => new Promise((next) => setImmediate(next)));
    this.writing.add(counted);
    void counted.then(() => this.writing.delete(counted));
    return writing;
  }

  /** On disk only, until memory has room. */
  private park(place: Place): void {
    this.shared.counters.move(null, 'buffered');
    this.spill?.park(place);
    this.takeBack();
  }

  private takeBack(): void {
    const { spill, capacity } = this;
    if (spill === null || this.takingBack || this.closed || spill.parked === 0) return;
    const limit = Math.min(TAKE_BACK, capacity.left);
    if (limit < 1) return;
    capacity.fill(0, limit);
    this.takingBack = true;
    void spill
      .takeParked(limit)
      .catch(() => null)
      .then((taken) => {
        // Closed meanwhile: they stay on disk.
        const kept = this.closed ? [] : (taken ?? []);
        const items = kept.map(({ entry, place }) => new OutboxItem(this, entry, null, place));
        for (const item of items) {
          capacity.fill(item.bytes, 0);
          this.send(item);
        }
        this.takingBack = taken === null;
        // Releasing looks for more.
        capacity.release(0, limit - items.length);
        if (taken !== null) return;
        setTimeout(() => {
          this.takingBack = false;
          this.takeBack();
        }, READ_AGAIN_MS).unref();
      });
  }
}
