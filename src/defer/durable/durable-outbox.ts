import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { PerfError } from '../../core/perf.error.js';
import { describeReason } from '../../core/reason.js';
import { within } from '../../core/within.js';
import type { DeferWhen } from '../deferred-work.js';
import { OutboxItem } from '../outbox/outbox-item.js';
import { Outbox, type Group, type OutboxShared } from '../outbox/outbox.js';
import type { Room } from '../room.js';
import { DeadLetters } from '../spill/dead-letters.js';
import { ProcessFolder } from '../spill/process-folder.js';
import { Spill } from '../spill/spill.js';
import type { DurableStore, DurableStoreHost } from './durable-store.js';
import { makeDurableJob, type DurableEntry } from './entry.js';

/** For a last word with the store, which nothing depends on any more, milliseconds. */
const CLOSE_MS = 1_000;
/** A store that owes its answer for so long gets the jobs again: ioredis may drop a command while it reconnects (redis/ioredis#2193). */
const STORE_MS = 30_000;
/** When the disk could not be read, it is read again so much later, milliseconds. */
const READ_AGAIN_MS = 1_000;
/** Upper limit of the files of dead letters, bytes: a file is not deleted before all that is in it may go. */
const MAX_DEAD_BYTES = 64 * 1024 * 1024;
/** A file may hold 30,000 small entries: to send them in one turn would block the loop for 100 ms and more. */
const MAX_TAKEN_A_TURN = 1_000;

type Item = OutboxItem<DurableEntry>;

/** Durable work on its way to the store. With a spill it is on disk first, and stays there alone while memory has no room for it. */
export class DurableOutbox extends Outbox<DurableEntry> {
  readonly target: DurableStore;
  readonly dead: DeadLetters;
  private readonly folder: ProcessFolder | null;
  private readonly spill: Spill | null;
  private isTakingBack = false;
  private adopted: Promise<void> | null = null;

  constructor(store: DurableStore, room: Room, shared: OutboxShared) {
    super('durable work', true, room, shared, Infinity);
    const { counters, report } = shared;
    this.target = store.forApplication?.() ?? store;
    const { spill } = store;
    this.folder = spill ? new ProcessFolder(spill.path, report) : null;
    this.spill = this.folder && new Spill(this.folder, spill!, counters, report);
    const ofDead = { ...spill, maxBytes: MAX_DEAD_BYTES };
    this.dead = new DeadLetters(this.folder && new Spill(this.folder, ofDead, { move() {} }, report, 'dead'), report);
    if (this.spill !== null) room.onReleased = () => void this.takeBack();
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
    this.adopted = this.adopt();
  }

  /** Sends what processes that are gone have left, now and from time to time. */
  private async adopt(): Promise<void> {
    this.shared.counters.expect(1);
    await this.folder?.keepAdopting((files) => {
      this.spill!.adopt(files);
      void this.takeBack();
    });
    this.shared.counters.expect(-1);
  }

  /** The application begins to close: this process takes no durable work from its store any more. */
  pauseWorker(): Promise<void> {
    return this.callStore('pause its worker', CLOSE_MS, () => this.target.pauseWorker?.());
  }

  stopWorker(deadlineMs: number): Promise<void> {
    return this.callStore('stop its worker', deadlineMs + CLOSE_MS, () => this.target.stopWorker(deadlineMs));
  }

  async closeStore(deadlineMs: number): Promise<void> {
    this.folder?.stopAdopting();
    const closed = this.callStore('close', deadlineMs, () => this.target.close());
    await this.callStore('close its `spillPath`', deadlineMs, async () => {
      await Promise.all([this.adopted, this.dead.close()]);
      await this.spill?.close();
      await this.folder?.release();
    });
    await closed;
  }

  private async callStore(step: string, deadlineMs: number, store: () => Promise<void> | undefined): Promise<void> {
    let why = `it has not answered within ${deadlineMs} ms`;
    try {
      if (await within(deadlineMs, async () => store())) return;
    } catch (error) {
      why = describeReason(error);
    }
    const cause = `store "${this.target.name}" failed to ${step}`;
    this.shared.report(cause, `${cause}: ${why}`);
  }

  /** Null when the policy drops it. With a spill its room comes first, and the disk's where there is none. @throws PERF_ERR_DEFER_FULL with `'reject'` */
  arm(entry: DurableEntry, when: DeferWhen | null): Item | null {
    const { spill } = this;
    const item = new OutboxItem<DurableEntry>(this, entry, when);
    if (spill !== null && (this.room.take(item) || !this.needsMemory)) return this.write(spill, item);
    return item.takeRoom() ? item : null;
  }

  /** Its answer waits for the disk. It may be stored sooner. */
  private write(spill: Spill, item: Item): Item {
    item.written = spill.append(item.parcel).then((place) => {
      if (place !== null) {
        item.place = place;
        this.room.keep(item);
        if (item.isOver) this.forget([item]);
        // Its request may go on for long.
        if (!item.hasRoom) item.dropData();
      }
      return place === null && this.room.overflow === 'reject' ? unwrittenError(item.name) : null;
    });
    return item;
  }

  override add(item: Item): void {
    if (item.hasRoom) return super.add(item);
    item.enter('buffered');
    void item.written!.then(() => this.park(item));
  }

  /** Memory has no room for it, and lets go of it where it is on disk. */
  private park(item: Item): void {
    const { room } = this;
    if (item.place !== null) {
      item.place.segment.park(item.place.offset);
      return void this.takeBack();
    }
    if (!this.closed && room.take(item)) this.send(item);
    else item.drop(this.closed ? 'the application has closed' : room.whyFull);
  }

  /** Resolves when it is on disk or in the store; rejects when the store refuses it for good. @throws PERF_ERR_DEFER_FULL, PERF_ERR_STORE */
  async enqueue(entry: DurableEntry): Promise<void> {
    const { room, spill } = this;
    if (this.closed) {
      throw new PerfError('PERF_ERR_STORE', `"${entry.name}" cannot be stored: the application has closed.`);
    }
    await new Promise<void>((resolve, reject) => {
      const ended = (error: Error | null): void => (error === null ? resolve() : reject(error));
      const item = new OutboxItem<DurableEntry>(this, entry, null, ended);
      if (!room.take(item) && this.needsMemory) throw room.makeFullError(entry.name);
      if (spill !== null) void this.write(spill, item).written!.then(() => item.place !== null && resolve());
      this.add(item);
    });
  }

  /** Sends dead letters with these ids again, all without ids; returns how many there was room for. */
  async resend(ids?: readonly string[]): Promise<number> {
    const { room, dead, spill } = this;
    const letters = dead.take(ids, Math.max(0, room.left));
    let sent = 0;
    const sending = letters.map(async (letter) => {
      const item = new OutboxItem<DurableEntry>(this, letter.entry);
      if (spill !== null) item.place = await spill.append(letter.entry);
      if (spill !== null && item.place === null) return dead.keep(letter);
      // A crash before this is on disk sends it twice, under one id.
      dead.delete(letter);
      room.add(item);
      this.add(item);
      sent += 1;
    });
    await Promise.all(sending);
    return sent;
  }

  protected override chooseGroup({ together, work, name, timeoutMs, attempts, options }: DurableEntry): Group {
    // A bulk is of one queue; items that travel in one job share its options.
    if (together === null) return { key: options.queue ?? '', limits: this.shared.limits, isOneJob: false };
    const key = JSON.stringify([work, name, timeoutMs, attempts, options, together]);
    return { key, limits: { maxJobs: together.maxItems, maxWaitMs: together.maxWaitMs }, isOneJob: true };
  }

  protected override async store(items: readonly Item[]): Promise<void> {
    const jobs = items.map(({ parcel, status }) => makeDurableJob(parcel, status));
    const adding = this.target.add(jobs, { batch: items[0]!.parcel.together !== null });
    await new Promise((resolve, reject) => {
      const late = (): void => reject(new Error(`the store has not answered within ${STORE_MS} ms`));
      const timer = setTimeout(late, STORE_MS).unref();
      void adding.then(resolve, reject).then(() => clearTimeout(timer));
    });
  }

  override forget(items: readonly Item[]): void {
    const places = items.flatMap(({ place }) => place ?? []);
    if (places.length > 0) this.spill!.strike(places);
  }

  /** Its entry is struck off once the dead letter is on disk; else it is sent again at the next start. */
  protected override reject(item: Item, error: string): void {
    this.dead.add(item.parcel, error, () => item.discard());
  }

  /** Sends what is on disk only, a segment at a time, once there is room. */
  private async takeBack(): Promise<void> {
    const { spill, room } = this;
    if (spill === null || this.isTakingBack || this.closed || !spill.parked || room.left < 1) return;
    this.isTakingBack = true;
    const taken = await spill.takeParked().catch(() => null);
    if (taken === null) await sleep(READ_AGAIN_MS, undefined, { ref: false });
    for (const [at, { entry, place }] of (taken ?? []).entries()) {
      if (at % MAX_TAKEN_A_TURN === 0) await nextTurn();
      // They stay on disk.
      if (this.closed) break;
      const item = new OutboxItem<DurableEntry>(this, entry);
      item.place = place;
      // Counted where it was parked, or found.
      item.state = 'buffered';
      room.add(item);
      this.send(item);
    }
    this.isTakingBack = false;
    void this.takeBack();
  }
}

const unwrittenError = (name: string): PerfError =>
  new PerfError(
    'PERF_ERR_DEFER_FULL',
    `durable work "${name}" is not on disk: the disk of \`spillPath\` refuses it, or has not answered in time. ` +
      'Answer 503 and let the client come back, or choose another `defer.overflow`.',
  );
