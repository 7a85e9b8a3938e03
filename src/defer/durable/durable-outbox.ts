import { setTimeout as sleep } from 'node:timers/promises';
import { PerfError } from '../../core/perf.error.js';
import { reasonOf } from '../../core/reason.js';
import type { Capacity, Reserved } from '../capacity.js';
import { unstarted } from '../counters.js';
import type { DeferWhen } from '../deferred-work.js';
import { bytesOf, fromJson } from '../outbox/json.js';
import { Outbox, OutboxItem, type OutboxShared } from '../outbox/outbox.js';
import type { RejectedWork } from '../outbox/rejects.js';
import type { Armed } from '../armed.js';
import type { Place } from '../spill/segment.js';
import { Spill } from '../spill/spill.js';
import type { TaskSequence } from '../tasks/task.js';
import { jobOf, type DurableEntry } from './durable-entry.js';
import type { DurableStore, DurableStoreHost } from './durable-store.js';

/** Parked entries that are brought back at a time. */
const TAKE_BACK = 500;
/** When the disk could not be read, it is asked again so much later, milliseconds. */
const READ_AGAIN_MS = 1_000;

type Item = OutboxItem<DurableEntry>;

/**
 * Durable work on its way to the store. With a spill, it is on disk before it is taken over, and what memory has no
 * capacity for stays there until there is; so does what an earlier process has left.
 */
export class DurableOutbox extends Outbox<DurableEntry> {
  private readonly spill: Spill | null;
  private takingBack = false;

  /** A store holds nothing back while its server is away: what is not answered is lost. */
  readonly resendsUnanswered = true;

  readonly target: DurableStore;

  constructor(store: DurableStore, capacity: Capacity, shared: OutboxShared) {
    super('durable work', true, capacity, shared);
    this.target = store.forApplication?.() ?? store;
    this.spill = store.spill ? new Spill(store.spill) : null;
    if (this.spill !== null) capacity.onReleased = () => void this.takeBack();
  }

  /** Prepared data must be on disk before the response goes on. */
  get hasDisk(): boolean {
    return this.spill !== null;
  }

  /** Whether prepared data needs no capacity in memory: a disk holds it, and takes more. */
  diskTakesMore(): boolean {
    return this.spill?.takesEntries() === true;
  }

  /** How much is on disk and nowhere else, once it is closed. */
  get onDisk(): number {
    return this.spill?.entries ?? 0;
  }

  /** Opens the store, and the spill: what an earlier process has left in it is sent. `host` is what the store may ask. */
  async start(host: DurableStoreHost): Promise<void> {
    try {
      await this.target.start(host);
      const left = (await this.spill?.open((cause, message) => this.shared.report(cause, message))) ?? 0;
      this.shared.counters.move(null, 'buffered', left);
      void this.takeBack();
    } catch (error) {
      // A boot that fails must not keep the process alive.
      await this.stopWorker(0);
      await this.closeStore();
      throw error;
    }
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

  /**
   * Null when the policy drops it.
   * @throws PERF_ERR_DEFER_FULL with `'reject'`
   */
  arm(entry: DurableEntry, when: DeferWhen | null, reserved: Reserved, sequence?: TaskSequence): Armed | null {
    if (this.spill !== null) return this.armOnDisk(this.spill, entry, when, reserved);
    if (reserved === false) return this.armInMemory(entry, when, sequence);
    this.capacity.fill(bytesOf(entry.json), 0);
    return new OutboxItem(this, entry, when);
  }

  private armOnDisk(spill: Spill, entry: DurableEntry, when: DeferWhen | null, reserved: Reserved): Armed {
    const { capacity, shared } = this;
    const isTaken = this.takeBeforeWriting(entry, reserved);
    const writing = this.write(spill, entry).then((place): Armed | null => {
      if (isTaken) return new OutboxItem(this, entry, when, place);
      if (place === null) return this.armUnwritten(entry, when);
      if (capacity.take(bytesOf(entry.json))) return new OutboxItem(this, entry, when, place);
      return { when, commit: () => this.park(spill, place), discard: () => spill.strike([place]) };
    });
    const written = writing.catch((error: unknown) => {
      shared.counters.fail(null, unstarted(entry.name, entry, true), error);
      return null;
    });
    return {
      name: entry.name,
      when,
      written,
      commit: (status) => void written.then((armed) => armed?.commit(status)),
      discard: () => void written.then((armed) => armed?.discard()),
    };
  }

  /**
   * Capacity for what a disk that refuses would leave without any: once it is being written, nobody hears it any more.
   * @throws PERF_ERR_DEFER_FULL with `'reject'`
   */
  private takeBeforeWriting({ name, json }: DurableEntry, reserved: Reserved): boolean {
    const { capacity } = this;
    if (reserved === 'memory') capacity.fill(bytesOf(json), 0);
    if (reserved !== false) return reserved === 'memory';
    return (
      capacity.overflow === 'reject' && !this.diskTakesMore() && capacity.takeFor(name, () => false, bytesOf(json))
    );
  }

  /** The disk has refused what was taken in: with `'reject'` it is kept, as others of the same moment, however full memory is. */
  private armUnwritten(entry: DurableEntry, when: DeferWhen | null): Armed | null {
    if (this.capacity.overflow !== 'reject') return this.armInMemory(entry, when);
    this.capacity.fill(bytesOf(entry.json));
    return new OutboxItem(this, entry, when);
  }

  /**
   * Durable work, now: resolves when it is on disk or in the store. Rejects when the store refuses it for good, and when
   * the application closes before.
   * @throws PERF_ERR_DEFER_FULL, PERF_ERR_STORE
   */
  async enqueue(entry: DurableEntry): Promise<void> {
    const { capacity, spill } = this;
    if (this.closed) {
      throw new PerfError('PERF_ERR_STORE', `"${entry.name}" cannot be stored: the application has closed.`);
    }
    const place = spill === null ? null : await this.write(spill, entry);
    const isTaken = capacity.take(bytesOf(entry.json));
    if (spill !== null && place !== null) {
      if (isTaken) this.add(new OutboxItem(this, entry, null, place));
      else this.park(spill, place);
      return;
    }
    if (!isTaken) throw capacity.deferFullError(entry.name);
    await new Promise<void>((resolve, reject) => {
      const ended = (error: Error | null): void => (error === null ? resolve() : reject(error));
      this.add(new OutboxItem(this, entry, null, null, ended));
    });
  }

  /** What the store has refused for good and is on disk, oldest first. */
  async rejected(): Promise<RejectedWork[]> {
    const entries = (await this.spill?.rejected()) ?? [];
    return entries.map(({ json, id, name, error, rejectedAt }) => {
      return { id, name, data: fromJson(json), error, rejectedAt };
    });
  }

  /** Sends those of them with these ids again, all without ids; returns how many there was capacity for. */
  async resend(ids: readonly string[] | undefined): Promise<number> {
    const again: Item[] = [];
    for (const { error: _, rejectedAt: __, ...entry } of (await this.spill?.rejected()) ?? []) {
      if (ids?.includes(entry.id) === false) continue;
      // On disk before it leaves the rejects: a crash in between sends it twice, under one id.
      const place = this.capacity.left < 1 ? null : await this.spill!.append(entry);
      if (place === null) break;
      this.capacity.fill(bytesOf(entry.json));
      again.push(new OutboxItem(this, entry, null, place));
    }
    // Sent only then: what is refused once more would be forgotten with them.
    try {
      if (again.length > 0) await this.spill?.forgetRejected(new Set(again.map(({ parcel }) => parcel.id)));
    } finally {
      for (const item of again) this.add(item);
    }
    return again.length;
  }

  protected override laneOf({ together, work, name, timeoutMs, attempts, options }: DurableEntry) {
    // A bulk is of one queue; items that travel in one job share its options.
    if (together === null) return { key: options.queue ?? '', limits: null };
    const { maxItems: maxJobs, maxWaitMs } = together;
    const key = JSON.stringify([work, name, timeoutMs, attempts, options, together]);
    return { key, limits: { maxJobs, maxWaitMs, maxItemsASend: maxJobs } };
  }

  override store(items: readonly Item[]): Promise<unknown> {
    const jobs = items.map(({ parcel, status }) => jobOf(parcel, status));
    return this.target.add(jobs, { batch: items[0]!.parcel.together !== null });
  }

  protected override strike(places: readonly Place[]): void {
    this.spill?.strike(places);
  }

  protected override reject(item: Item, error: string): void {
    if (item.place === null) super.reject(item, error);
    else void this.spill?.reject(item.parcel, item.place, error);
  }

  private async write(spill: Spill, entry: DurableEntry): Promise<Place | null> {
    this.shared.counters.expect(1);
    const place = await spill.append(entry);
    // In the next turn whoever waits for it has counted it.
    setImmediate(() => this.shared.counters.expect(-1));
    return place;
  }

  private park(spill: Spill, place: Place): void {
    this.shared.counters.move(null, 'buffered');
    spill.park(place);
    void this.takeBack();
  }

  /** Sends what is on disk only, as far as there is capacity. */
  private async takeBack(): Promise<void> {
    const { spill, capacity } = this;
    const limit = Math.min(TAKE_BACK, capacity.left);
    if (spill === null || this.takingBack || this.closed || spill.parked === 0 || limit < 1) return;
    this.takingBack = true;
    capacity.fill(0, limit);
    const back = await spill.takeParked(limit).catch(() => null);
    const { taken, damagedLines } = back ?? { taken: [], damagedLines: 0 };
    this.shared.counters.move('buffered', 'dropped', damagedLines);
    // Closed meanwhile: they stay on disk.
    const items = this.closed ? [] : taken.map(({ entry, place }) => new OutboxItem(this, entry, null, place));
    for (const item of items) {
      capacity.fill(item.bytes, 0);
      this.send(item);
    }
    this.takingBack = back === null;
    // Releasing looks for more.
    capacity.release(0, limit - items.length);
    if (back !== null) return;
    await sleep(READ_AGAIN_MS, undefined, { ref: false });
    this.takingBack = false;
    void this.takeBack();
  }
}
