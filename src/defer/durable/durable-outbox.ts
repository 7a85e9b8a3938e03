import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { PerfError } from '../../core/perf.error.js';
import { describeReason } from '../../core/reason.js';
import { within } from '../../core/within.js';
import type { DeferWhen } from '../deferred-work.js';
import { Outbox, OutboxItem, type Group, type OutboxShared } from '../outbox/outbox.js';
import type { Room } from '../item.js';
import { DeadLetters } from '../spill/dead-letters.js';
import { ProcessFolder } from '../spill/process-folder.js';
import { Spill } from '../spill/spill.js';
import type { DurableStore, DurableStoreHost } from './durable-store.js';
import { makeDurableJob, type DurableEntry } from './entry.js';

/** Deadline for a store to pause, stop or close, beyond the one for its jobs, milliseconds. */
const CLOSE_MS = 1_000;
/** A store that has not answered for so long gets the jobs again: ioredis may drop a command while it reconnects (redis/ioredis#2193). */
const STORE_MS = 30_000;
/** Wait before a failed read of the disk is repeated, milliseconds. */
const READ_AGAIN_MS = 1_000;
/** Upper limit of the files of dead letters, bytes. More than the letters': a file is deleted when none of its letters is left. */
const MAX_DEAD_BYTES = 64 * 1024 * 1024;
/** A file may hold 30,000 small entries: sending all in one turn would block the loop for 100 ms and more. */
const MAX_TAKEN_A_TURN = 1_000;

type Item = OutboxItem<DurableEntry>;

/** Durable work on its way to the store. With a spill each item is on disk first, and is only there while memory has no room. */
export class DurableOutbox extends Outbox<DurableEntry> {
  /** The store of the options, or its copy for this application. */
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

  /** There is no spill, or it refuses new work. */
  get lacksDisk(): boolean {
    return this.spill?.refuses !== false;
  }

  /** Rest on disk of a closed outbox: entries, and files of earlier processes that were not read. */
  get onDisk(): { readonly entries: number; readonly files: number } {
    const { entries = 0, unreadFiles: files = 0 } = this.spill ?? {};
    return { entries, files };
  }

  /** Opens the store and the spill, and begins to send what earlier processes have left there. */
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

  /** Takes over files of processes that have ended, now and from time to time. */
  private async adopt(): Promise<void> {
    this.shared.counters.expect(1);
    await this.folder?.keepAdopting((files) => {
      this.spill!.adopt(files);
      void this.takeBack();
    });
    this.shared.counters.expect(-1);
  }

  /** The application begins to close: this process takes no new jobs from the store. */
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

  /** Null when the policy drops it. With a spill that takes it, work needs no room in memory. @throws PERF_ERR_DEFER_FULL with `'reject'` */
  arm(entry: DurableEntry, when: DeferWhen | null): Item | null {
    const { spill } = this;
    const item = new OutboxItem<DurableEntry>(this, entry, when);
    if (spill !== null && (this.room.tryTake(item) || !this.lacksDisk)) return this.write(spill, item);
    return item.takeRoom() ? item : null;
  }

  private write(spill: Spill, item: Item): Item {
    item.written = spill.append(item.parcel).then((place) => {
      if (place !== null) {
        item.diskPlace = place;
        this.room.pin(item);
        // The store, or the request's end, was faster than the disk.
        if (item.isOver) this.forget([item]);
        // Without room in memory its data is on disk only: its request may go on for long.
        if (!item.hasRoom) item.parcel = { ...item.parcel, json: undefined };
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

  /** Leaves an item without room to the disk; or tries once more to find room where the disk has refused it. */
  private park(item: Item): void {
    const { room } = this;
    if (item.diskPlace !== null) {
      item.diskPlace.segment.park(item.diskPlace.offset);
      return void this.takeBack();
    }
    if (!this.closed && room.tryTake(item)) this.send(item);
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
      if (!room.tryTake(item) && this.lacksDisk) throw room.makeFullError(entry.name);
      if (spill !== null) void this.write(spill, item).written!.then(() => item.diskPlace !== null && resolve());
      this.add(item);
    });
  }

  /** Sends dead letters again, all without `ids`. Resolves with how many there was room for. */
  async resend(ids?: readonly string[]): Promise<number> {
    const { room, dead, spill } = this;
    const letters = dead.take(ids, Math.max(0, room.left));
    let sent = 0;
    const sending = letters.map(async (letter) => {
      const item = new OutboxItem<DurableEntry>(this, letter.entry);
      if (spill !== null) item.diskPlace = await spill.append(letter.entry);
      if (spill !== null && item.diskPlace === null) return dead.keep(letter);
      // A crash before this is on disk sends it twice, under one id.
      dead.delete(letter);
      room.takeAnyway(item);
      this.add(item);
      sent += 1;
    });
    await Promise.all(sending);
    return sent;
  }

  protected override chooseGroup({ together, work, name, timeoutMs, attempts, options }: DurableEntry): Group {
    // A bulk goes to one queue; items of one job share the job's options.
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
    const places = items.flatMap(({ diskPlace }) => diskPlace ?? []);
    if (places.length > 0) this.spill!.strike(places);
  }

  /** Strikes its entry off once the dead letter is on disk: after a crash before that, the next start sends it again. */
  protected override reject(item: Item, error: string): void {
    this.dead.add(item.parcel, error, () => item.discard());
  }

  /** Sends entries that are only on disk, a segment at a time, once memory has room. */
  private async takeBack(): Promise<void> {
    const { spill, room } = this;
    if (spill === null || this.isTakingBack || this.closed || !spill.hasParked || room.left < 1) return;
    this.isTakingBack = true;
    const taken = await spill.takeParked().catch(() => null);
    if (taken === null) await sleep(READ_AGAIN_MS, undefined, { ref: false });
    for (const [at, { entry, place }] of (taken ?? []).entries()) {
      if (at % MAX_TAKEN_A_TURN === 0) await nextTurn();
      // The rest stays on disk.
      if (this.closed) break;
      const item = new OutboxItem<DurableEntry>(this, entry);
      item.diskPlace = place;
      // The spill has counted it as buffered.
      item.state = 'buffered';
      room.takeAnyway(item);
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
