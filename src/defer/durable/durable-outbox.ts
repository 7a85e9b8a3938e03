import { setTimeout as sleep } from 'node:timers/promises';
import { PerfError } from '../../core/perf.error.js';
import { reasonOf } from '../../core/reason.js';
import { within } from '../../core/within.js';
import type { Capacity } from '../capacity.js';
import { unstarted } from '../counters.js';
import type { DeferWhen } from '../deferred-work.js';
import { bytesOf, fromJson } from '../outbox/json.js';
import { Outbox, OutboxItem, type OutboxShared } from '../outbox/outbox.js';
import type { DeadLetterPage, RejectedWork } from '../outbox/rejects.js';
import type { Armed } from '../armed.js';
import type { Place } from '../spill/segment.js';
import type { DeadLetter } from '../spill/dead-letters.js';
import { Spill } from '../spill/spill.js';
import type { TaskSequence } from '../tasks/task.js';
import { jobOf, type DurableEntry } from './durable-entry.js';
import type { DurableStore, DurableStoreHost } from './durable-store.js';

/** Parked entries that are brought back at a time. */
const TAKE_BACK = 500;
/** For a last word with the store, which nothing depends on any more, milliseconds. */
const CLOSE_MS = 1_000;
/** A reader of dead letters right after the boot waits so long for those of earlier processes, milliseconds. */
const ADOPT_MS = 5_000;
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
  /** Resolves when the entries that earlier processes have left are found. */
  private adopted: Promise<void> = Promise.resolve();

  /** A store holds nothing back while its server is away: what is not answered is lost. */
  readonly resendsUnanswered = true;

  readonly target: DurableStore;

  constructor(store: DurableStore, capacity: Capacity, shared: OutboxShared) {
    super('durable work', true, capacity, shared);
    const { counters, report } = shared;
    this.target = store.forApplication?.() ?? store;
    const found = (entries: number): void => counters.move(null, 'buffered', entries);
    const lost = (entries: number): void => counters.move('buffered', 'stored', entries);
    this.spill = store.spill ? new Spill(store.spill, { report, found, lost }) : null;
    if (this.spill !== null) capacity.onReleased = () => void this.takeBack();
  }

  /** Prepared data must be on disk before the response goes on. */
  get hasDisk(): boolean {
    return this.spill !== null;
  }

  /** No disk takes new work. */
  get needsMemory(): boolean {
    return this.spill?.refuses !== false;
  }

  /** How much is on disk and nowhere else, once it is closed: entries, and files of earlier processes that were not read. */
  get onDisk(): { readonly entries: number; readonly files: number } {
    const { entries = 0, unreadFiles: files = 0 } = this.spill ?? {};
    return { entries, files };
  }

  /** Opens the store, and the spill: what an earlier process has left in it is sent. `host` is what the store may ask. */
  async start(host: DurableStoreHost): Promise<void> {
    try {
      await this.target.start(host);
      await this.spill?.open();
      this.adopted = this.adopt();
    } catch (error) {
      // A boot that fails must not keep the process alive.
      await this.stopWorker(0);
      await this.closeStore(CLOSE_MS);
      throw error;
    }
  }

  private async adopt(): Promise<void> {
    this.shared.counters.expect(1);
    await this.spill?.adopt(() => void this.takeBack());
    this.shared.counters.expect(-1);
  }

  /** The application begins to close: this process takes no durable work from its store any more. */
  async pauseWorker(): Promise<void> {
    await this.ask('pause its worker', CLOSE_MS, () => this.target.pauseWorker?.());
  }

  async stopWorker(deadlineMs: number): Promise<void> {
    await this.ask('stop its worker', deadlineMs + CLOSE_MS, () => this.target.stopWorker(deadlineMs));
  }

  async closeStore(deadlineMs: number): Promise<void> {
    await this.ask('close', deadlineMs, () => this.target.close());
    await this.spill?.close(deadlineMs);
  }

  private async ask(step: string, deadlineMs: number, store: () => Promise<void> | undefined): Promise<void> {
    let why = `it has not answered within ${deadlineMs} ms`;
    try {
      if (await within(deadlineMs, async () => store())) return;
    } catch (error) {
      why = reasonOf(error);
    }
    const cause = `store "${this.target.name}" failed to ${step}`;
    this.shared.report(cause, `${cause}: ${why}`);
  }

  /**
   * Null when the policy drops it.
   * @throws PERF_ERR_DEFER_FULL with `'reject'`
   */
  arm(entry: DurableEntry, when: DeferWhen | null, sequence?: TaskSequence): Armed | null {
    const { spill } = this;
    if (spill === null || (this.needsMemory && this.capacity.left < 1)) return this.armInMemory(entry, when, sequence);
    return this.armOnDisk(spill, entry, when);
  }

  private armOnDisk(spill: Spill, entry: DurableEntry, when: DeferWhen | null): Armed {
    const { capacity, shared } = this;
    let refusal: PerfError | null = null;
    const writing = this.write(spill, entry).then((place): Armed | null => {
      if (place === null && capacity.overflow !== 'reject') return this.armInMemory(entry, when);
      if (place === null) {
        refusal = unwrittenError(entry.name);
        return { when, commit: (status) => this.keepUnwritten(entry, status), discard: () => {} };
      }
      if (capacity.take(bytesOf(entry.json))) return new OutboxItem(this, entry, when, place);
      return { when, commit: () => this.park(spill, place), discard: () => spill.strike([place]) };
    });
    const armed = writing.catch((error: unknown) => {
      shared.counters.fail(null, unstarted(entry.name, entry, true), error);
      return null;
    });
    return {
      name: entry.name,
      when,
      written: armed.then(() => refusal),
      commit: (status) => void armed.then((ready) => ready?.commit(status)),
      discard: () => void armed.then((ready) => ready?.discard()),
    };
  }

  /** The disk has refused it with `'reject'`, and no route could answer 503. */
  private keepUnwritten(entry: DurableEntry, status: number | null): void {
    const { capacity, shared } = this;
    if (!capacity.take(bytesOf(entry.json))) {
      return shared.counters.drop(null, unstarted(entry.name, entry, true), capacity.whyFull);
    }
    new OutboxItem(this, entry).commit(status);
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

  /** Work that the store has refused for good and that is on disk, oldest first. */
  async rejected(page: DeadLetterPage): Promise<RejectedWork[]> {
    await within(ADOPT_MS, () => this.adopted);
    const letters = (await this.spill?.dead.read(page)) ?? [];
    return letters.map(({ json, id, name, error, rejectedAt }) => {
      return { id, name, data: fromJson(json), error, rejectedAt };
    });
  }

  /** Sends those of them with these ids again, all without ids; returns how many there was capacity for. */
  async resend(ids: readonly string[] | undefined): Promise<number> {
    const { spill, capacity } = this;
    if (spill === null) return 0;
    await within(ADOPT_MS, () => this.adopted);
    const wanted = ids === undefined ? null : new Set(ids);
    let sent = 0;
    for (;;) {
      const limit = Math.min(TAKE_BACK, Math.max(0, capacity.left));
      const buried = await spill.dead.take(wanted, limit);
      // On disk before they leave the dead letters: a crash in between sends them twice, under one id.
      const places = await Promise.all(buried.map(({ letter }) => spill.append(withoutError(letter))));
      const refused = buried.filter((_, i) => places[i] === null);
      spill.dead.putBack(refused);
      // Sent only then: what is refused once more would be forgotten with them.
      await spill.dead.strike(buried.filter((_, i) => places[i] !== null));
      for (const [i, { letter }] of buried.entries()) {
        const place = places[i];
        if (place === null || place === undefined) continue;
        capacity.fill(bytesOf(letter.json));
        this.add(new OutboxItem(this, withoutError(letter), null, place));
        sent += 1;
      }
      if (refused.length > 0 || buried.length === 0 || buried.length < limit) return sent;
    }
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
    else void this.spill?.bury(item.parcel, item.place, error);
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
    if (spill === null || this.takingBack || this.closed || !spill.parked || limit < 1) return;
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

function withoutError(letter: DeadLetter): DurableEntry {
  const { error: _error, rejectedAt: _rejectedAt, ...entry } = letter;
  return entry;
}

const unwrittenError = (name: string): PerfError =>
  new PerfError(
    'PERF_ERR_DEFER_FULL',
    `durable work "${name}" is not on disk: the disk of \`spillPath\` refuses it, or has not answered in time. ` +
      'Answer 503 and let the client come back, or choose another `defer.overflow`.',
  );
