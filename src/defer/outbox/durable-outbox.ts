import { epochMsOf } from '../../core/clock.js';
import { BulkSender, type BatchLimits } from './bulk-sender.js';
import type { DurableJob, DurableStore, JournalEntry } from '../durable/durable-store.js';
import type { DeferWhen } from '../deferred-work.js';
import type { ReportCause } from './job-outbox.js';
import { reasonOf, type DeferLedger, type Ended } from '../ledger.js';
import type { Armed } from '../request-tasks.js';
import type { Room } from '../room.js';
import { fromJson } from './serialize.js';

/** Parked entries that are brought back at a time. */
const TAKE_BACK = 500;

/** Durable work on its way to the store. */
export class DurableItem implements Armed {
  /** Final status of the response; null when it is replayed. */
  status: number | null = null;

  constructor(
    readonly entry: JournalEntry,
    readonly when: DeferWhen | null,
    private readonly outbox: DurableOutbox,
  ) {}

  commit(status: number | null): void {
    this.status = status;
    this.outbox.add(this);
  }

  discard(): void {
    this.outbox.discard(this);
  }
}

/**
 * Durable work, micro-batched to the store, in a buffer of bounded size. With a journal, what the buffer cannot take
 * stays on disk and comes back when there is room; so does what an earlier process has left.
 */
export class DurableOutbox {
  private readonly jobs: BulkSender<DurableItem>;
  private readonly envelopes = new Map<string, BulkSender<DurableItem>>();
  private takingBack = false;
  private closed = false;

  constructor(
    private readonly store: DurableStore,
    private readonly limits: BatchLimits,
    private readonly room: Room,
    private readonly ledger: DeferLedger,
    private readonly report: ReportCause,
  ) {
    this.jobs = this.senderFor(false);
    if (store.journal !== undefined && store.journal !== null) room.whenReleased(() => this.takeBack());
  }

  /** Opens the journal and sends what an earlier process has left in it. */
  async open(): Promise<void> {
    const left = (await this.store.journal?.open(this.report)) ?? 0;
    if (left === 0) return;
    this.ledger.buffer(left);
    this.takeBack();
  }

  /** Puts prepared data on disk, when there is a journal; resolves with whether it is there. */
  async journal(entry: JournalEntry): Promise<boolean> {
    return (await this.store.journal?.append(entry)) ?? false;
  }

  /** Takes over an item that has its room. */
  add(item: DurableItem): void {
    this.ledger.buffer();
    this.send(item);
  }

  /** Takes over an item that is on disk and has no room in memory. */
  park(id: string): void {
    this.ledger.buffer();
    this.store.journal?.park(id);
    this.takeBack();
  }

  /** Gives back the room of an item that need not run. */
  discard({ entry }: DurableItem): void {
    this.forget(entry.id);
    this.room.release();
  }

  /** Strikes off an item that need not run and has no room. */
  forget(id: string): void {
    this.store.journal?.strike([id]);
  }

  /** Drops an item that has waited longest; false when all are on their way. With a journal it stays on disk. */
  dropOldest(): boolean {
    for (const sender of this.senders()) {
      const item = sender.takeOldest();
      if (item === undefined) continue;
      this.room.release();
      this.ledger.drop(endedOf(item, 1, 0), 'newer work took its place', true);
      return true;
    }
    return false;
  }

  flush(): void {
    for (const sender of this.senders()) sender.flush();
  }

  /**
   * Stops. Without a journal, drops what is not stored and returns its names; with one it stays on disk, and on the
   * books as buffered.
   */
  close(reason: string): { dropped: string[]; onDisk: number } {
    this.closed = true;
    const left = [...this.senders()].flatMap((sender) => sender.close());
    const { journal } = this.store;
    if (journal !== undefined && journal !== null) return { dropped: [], onDisk: left.length + journal.parked };
    for (const item of left) {
      this.room.release();
      this.ledger.drop(endedOf(item, 1, 0), reason, true);
    }
    return { dropped: left.map(({ entry }) => entry.name), onDisk: 0 };
  }

  private send(item: DurableItem): void {
    const { envelope, work } = item.entry;
    if (!envelope) {
      this.jobs.add(item);
      return;
    }
    let sender = this.envelopes.get(work);
    if (sender === undefined) {
      sender = this.senderFor(true);
      this.envelopes.set(work, sender);
    }
    sender.add(item);
  }

  private *senders(): Iterable<BulkSender<DurableItem>> {
    yield this.jobs;
    yield* this.envelopes.values();
  }

  private senderFor(envelope: boolean): BulkSender<DurableItem> {
    return new BulkSender<DurableItem>(this.limits, {
      send: (items) => {
        const jobs = items.map(({ entry, status }) => sentJob(entry, status, this.store.readsJson === true));
        return this.store.add(jobs, { envelope });
      },
      stored: (items) => {
        this.store.journal?.strike(items.map(({ entry }) => entry.id));
        this.room.release(items.length);
        this.ledger.store(items.length);
      },
      refused: (item, sends, error) => {
        this.store.journal?.strike([item.entry.id]);
        this.room.release();
        this.ledger.refuse(endedOf(item, sends, 0), error);
      },
      retried: (items, error) => {
        this.ledger.resend(items.length);
        const cause = `durable work could not be stored: ${reasonOf(error)}`;
        this.report(cause, `${cause}. It is kept and sent again under the same ids.`);
      },
    });
  }

  /** Brings parked entries back while there is room. */
  private takeBack(): void {
    const { journal } = this.store;
    if (journal === undefined || journal === null || this.takingBack || this.closed || journal.parked === 0) return;
    const limit = Math.min(TAKE_BACK, this.room.limit - this.room.taken);
    if (limit < 1 || !this.room.take(limit)) return;
    this.takingBack = true;
    void journal.takeParked(limit).then((entries) => {
      for (const entry of entries) this.send(new DurableItem(entry, null, this));
      this.takingBack = false;
      // Releasing looks for more; with nothing read there is nothing more to read, or the disk is in trouble.
      if (entries.length > 0) this.room.release(limit - entries.length);
    });
  }
}

/** An item as its store gets it. */
function sentJob(entry: JournalEntry, status: number | null, asText: boolean): DurableJob {
  const { id, work, name, json, requestId, timeoutMs, attempts, at } = entry;
  const data = asText ? undefined : fromJson(json);
  return { id, work, name, data, json, requestId, status, timeoutMs, attempts, at };
}

function endedOf({ entry }: DurableItem, attempt: number, runMs: number): Ended {
  const { name, requestId, at } = entry;
  return { name, requestId, waitMs: Math.max(0, epochMsOf(performance.now()) - at), runMs, attempt };
}
