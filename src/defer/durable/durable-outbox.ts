import { setTimeout as sleep } from 'node:timers/promises';
import { PerfError } from '../../core/perf.error.js';
import { reasonOf } from '../../core/reason.js';
import { within } from '../../core/within.js';
import type { Capacity } from '../capacity.js';
import { unstarted } from '../counters.js';
import type { DeferWhen } from '../deferred-work.js';
import { countBytes } from '../outbox/json.js';
import { Outbox, OutboxItem, type OutboxShared } from '../outbox/outbox.js';
import type { Place } from '../spill/segment.js';
import { DeadLetters, type DeadLetter } from '../spill/dead-letters.js';
import { ProcessFolder } from '../spill/process-folder.js';
import { Spill } from '../spill/spill.js';
import type { Armed, TaskSequence } from '../tasks/task.js';
import { makeDurableJob, type DurableEntry } from './durable-entry.js';
import type { DurableStore, DurableStoreHost } from './durable-store.js';

const TAKE_BACK = 500;
/** For a last word with the store, which nothing depends on any more, milliseconds. */
const CLOSE_MS = 1_000;
/** When the disk could not be read, it is read again so much later, milliseconds. */
const READ_AGAIN_MS = 1_000;

type Item = OutboxItem<DurableEntry>;

/**
 * Durable work on its way to the store. With a spill, it is on disk before it is taken over, and what memory has no
 * capacity for stays there until there is; so does what an earlier process has left.
 */
export class DurableOutbox extends Outbox<DurableEntry> {
  readonly target: DurableStore;
  readonly dead: DeadLetters;
  private readonly folder: ProcessFolder | null;
  private readonly spill: Spill | null;
  private takingBack = false;

  /** A store buffers nothing while its server is away: what is not answered is lost. */
  readonly resendsUnanswered = true;

  constructor(store: DurableStore, capacity: Capacity, shared: OutboxShared) {
    super('durable work', true, capacity, shared);
    const { counters, report } = shared;
    this.target = store.forApplication?.() ?? store;
    const events = {
      report,
      found: (entries: number) => counters.move(null, 'buffered', entries),
      damaged: (entries: number) => counters.move('buffered', 'dropped', entries),
      lost: (entries: number) => counters.move('buffered', 'stored', entries),
    };
    const { spill } = store;
    this.folder = spill ? new ProcessFolder(spill.path, report) : null;
    this.spill = this.folder && new Spill(this.folder, 'work', spill!, events);
    this.dead = new DeadLetters(this.folder, spill ?? {}, report);
    if (this.spill !== null) capacity.onReleased = () => void this.takeBack();
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

  /** Opens the store, and the spill, whose entries of earlier processes are sent. `host` is called by the store. */
  async start(host: DurableStoreHost): Promise<void> {
    try {
      await this.target.start(host);
      await this.folder?.open();
    } catch (error) {
      // A boot that fails must not keep the process alive.
      await this.stopWorker(0);
      await this.closeStore(CLOSE_MS);
      throw error;
    }
    if (this.folder !== null) void this.dead.waitFor(this.adopt(this.folder));
  }

  private async adopt(folder: ProcessFolder): Promise<void> {
    this.shared.counters.expect(1);
    await folder.keepAdopting(({ work, dead }) => {
      this.spill!.adopt(work);
      this.dead.adopt(dead);
      void this.takeBack();
    });
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
    await this.ask('close its `spillPath`', deadlineMs, async () => {
      await this.dead.close();
      await this.spill?.close();
      await this.folder?.release();
    });
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
      if (place === null && capacity.overflow === 'reject') refusal = unwrittenError(entry.name);
      if (place === null) return this.armInMemory(entry, when);
      if (capacity.take(countBytes(entry.json))) return new OutboxItem(this, entry, when, place);
      return { when, commit: () => this.park(spill, place), discard: () => spill.strike([place]) };
    });
    const armed = writing.catch((error: unknown): Armed | null => {
      const item = unstarted(entry.name, entry, true);
      // Memory is full as well: its route answers 503 where it can.
      const drop = (): void => shared.counters.drop(null, item, capacity.whyFull);
      if (refusal !== null) return { when, commit: drop, discard: () => {} };
      shared.counters.fail(null, item, error);
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
    const isTaken = capacity.take(countBytes(entry.json));
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

  /** Sends dead letters with these ids again, all without ids; returns how many there was capacity for. */
  async resend(ids: readonly string[] | undefined): Promise<number> {
    const { capacity, dead, spill } = this;
    const buried = await dead.take(ids, Math.max(0, capacity.left));
    let sent = 0;
    const sending = buried.map(async (one) => {
      const entry = withoutError(one.letter);
      const place = spill && (await spill.append(entry));
      if (spill !== null && place === null) return dead.putBack([one]);
      // A crash before this is on disk sends it twice, under one id.
      dead.strike([one]);
      capacity.fill(countBytes(entry.json));
      this.add(new OutboxItem(this, entry, null, place));
      sent += 1;
    });
    await Promise.all(sending);
    return sent;
  }

  protected override chooseLane({ together, work, name, timeoutMs, attempts, options }: DurableEntry) {
    // A bulk is of one queue; items that travel in one job share its options.
    if (together === null) return { key: options.queue ?? '', limits: null };
    const { maxItems: maxJobs, maxWaitMs } = together;
    const key = JSON.stringify([work, name, timeoutMs, attempts, options, together]);
    return { key, limits: { maxJobs, maxWaitMs, maxItemsASend: maxJobs } };
  }

  override store(items: readonly Item[]): Promise<unknown> {
    const jobs = items.map(({ parcel, status }) => makeDurableJob(parcel, status));
    return this.target.add(jobs, { batch: items[0]!.parcel.together !== null });
  }

  protected override strike(places: readonly Place[]): void {
    this.spill?.strike(places);
  }

  /** Its entry is struck off once the dead letter is on disk; else it is sent again at the next start. */
  protected override reject({ parcel, place }: Item, error: string): void {
    void this.dead.add({ ...parcel, error, rejectedAt: Date.now() }, () => place !== null && this.strike([place]));
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
    // Closed meanwhile: they stay on disk.
    const taken = this.closed ? [] : (back ?? []);
    for (const { entry, place } of taken) {
      const item = new OutboxItem(this, entry, null, place);
      capacity.fill(item.bytes, 0);
      this.send(item);
    }
    this.takingBack = back === null;
    // Releasing takes more back.
    capacity.release(0, limit - taken.length);
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
