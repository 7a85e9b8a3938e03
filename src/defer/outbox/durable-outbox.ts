import { epochMsOf } from '../../core/clock.js';
import { BulkSender, type BatchLimits } from './bulk-sender.js';
import type {
  NewDurableJob,
  DurableJournal,
  DurableStore,
  JournalEntry,
  JournalPlace,
} from '../durable/durable-store.js';
import type { DeferWhen } from '../deferred-work.js';
import type { ReportCause, Shared } from './job-outbox.js';
import { reasonOf, type DeferLedger, type Ended } from '../ledger.js';
import type { Armed } from '../request-tasks.js';
import type { Room } from '../room.js';
import { FULL_OF_REJECTS, type RejectedWork, type Rejects } from './rejects.js';
import { bytesOf, fromJson } from './serialize.js';

/** Parked entries that are brought back at a time. */
const TAKE_BACK = 500;
/** When the disk could not be read, it is asked again so much later, milliseconds. */
const READ_AGAIN_MS = 1_000;

/** Durable work on its way to the store. */
export class DurableItem implements Armed {
  /** Final status of the response; null when it is replayed. */
  status: number | null = null;
  /** In the order in which they were added. */
  number = 0;

  constructor(
    readonly entry: JournalEntry,
    readonly when: DeferWhen | null,
    private readonly outbox: DurableOutbox,
    /** Where it stands in the journal; null when it does not. */
    readonly place: JournalPlace | null,
    /** Hears how it has ended: null once it is stored. */
    readonly ended: (error: Error | null) => void = () => {},
  ) {}

  get bytes(): number {
    return bytesOf(this.entry.json);
  }

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
  private readonly senders = new Map<string, BulkSender<DurableItem>>();
  /** The same by the object that all entries of a handler share. */
  private readonly senderOf = new WeakMap<object, BulkSender<DurableItem>>();
  private takingBack = false;
  private count = 0;
  private closed = false;
  private readonly limits: BatchLimits;
  private readonly ledger: DeferLedger;
  private readonly rejects: Rejects;
  private readonly report: ReportCause;
  private readonly journal: DurableJournal | null;

  constructor(
    private readonly store: DurableStore,
    { limits, ledger, rejects, report }: Shared,
    private readonly room: Room,
  ) {
    this.limits = limits;
    this.ledger = ledger;
    this.rejects = rejects;
    this.report = report;
    this.journal = store.journal ?? null;
    if (this.journal !== null) room.whenReleased(() => this.takeBack());
  }

  /** Opens the journal and sends what an earlier process has left in it. */
  async open(): Promise<void> {
    const left = (await this.journal?.open(this.report)) ?? 0;
    if (left === 0) return;
    this.ledger.buffer(left);
    this.takeBack();
  }

  /** Puts prepared data on disk; resolves with its place there, or null. */
  async write(entry: JournalEntry): Promise<JournalPlace | null> {
    return (await this.journal?.append(entry)) ?? null;
  }

  /** Takes over an item that has its room. */
  add(item: DurableItem): void {
    this.ledger.buffer();
    item.number = this.count++;
    if (!this.closed) this.send(item);
    else if (item.place === null) this.drop(item, 'the application has closed');
  }

  /** Takes over an item that is on disk and has no room in memory. */
  park(place: JournalPlace): void {
    this.ledger.buffer();
    this.journal?.park(place);
    this.takeBack();
  }

  /** Gives back the room of an item that need not run. */
  discard({ place, bytes }: DurableItem): void {
    if (place !== null) this.forget(place);
    this.room.release(bytes);
  }

  /** Strikes off an item that need not run and has no room. */
  forget(place: JournalPlace): void {
    this.journal?.strike([place]);
  }

  /** Drops an item that has waited longest; false when all are on their way. With a journal it stays on disk. */
  dropOldest(): boolean {
    const waiting = [...this.senders.values()].filter(({ oldest }) => oldest !== undefined);
    const [sender] = waiting.toSorted((a, b) => a.oldest!.number - b.oldest!.number);
    if (sender === undefined) return false;
    this.drop(sender.takeOldest()!, 'newer work took its place');
    return true;
  }

  flush(): void {
    for (const sender of this.senders.values()) sender.flush();
  }

  /**
   * Stops. What is on disk stays there, and on the books as buffered; the rest is dropped, and named.
   */
  close(reason: string): { dropped: string[]; onDisk: number } {
    this.closed = true;
    const left = [...this.senders.values()].flatMap((sender) => sender.close());
    const lost = left.filter(({ place }) => place === null);
    for (const item of lost) this.drop(item, reason);
    return {
      dropped: lost.map(({ entry }) => entry.name),
      onDisk: left.length - lost.length + (this.journal?.parked ?? 0),
    };
  }

  private drop(item: DurableItem, why: string): void {
    this.room.release(item.bytes);
    this.ledger.drop(endedOf(item, 1, 0), why, true);
    item.ended(new Error(why));
  }

  private send(item: DurableItem): void {
    const { options } = item.entry;
    let sender = this.senderOf.get(options);
    if (sender === undefined) {
      sender = this.findSender(item.entry);
      this.senderOf.set(options, sender);
    }
    sender.add(item);
  }

  private findSender({ together, work, name, timeoutMs, attempts, options }: JournalEntry): BulkSender<DurableItem> {
    // A bulk is of one queue; items that travel in one job share its options.
    const own = [work, name, timeoutMs, attempts, options, together];
    const key = JSON.stringify(together === null ? options.queue : own);
    let sender = this.senders.get(key);
    if (sender === undefined) {
      sender = this.senderFor(together);
      this.senders.set(key, sender);
    }
    return sender;
  }

  private senderFor(together: JournalEntry['together']): BulkSender<DurableItem> {
    const envelope = together !== null;
    const limits = envelope
      ? { maxJobs: together.maxItems, maxWaitMs: together.maxWaitMs, maxItemsASend: together.maxItems }
      : this.limits;
    return new BulkSender<DurableItem>(limits, {
      send: (items) => {
        const jobs = items.map(({ entry, status }) => sentJob(entry, status));
        return this.store.add(jobs, { envelope });
      },
      stored: (items) => {
        this.journal?.strike(items.map(({ place }) => place).filter((place) => place !== null));
        this.room.release(bytesOfAll(items), items.length);
        this.ledger.store(items.length);
        for (const item of items) item.ended(null);
      },
      refused: (item, sends, error) => {
        this.reject(item, reasonOf(error));
        this.room.release(item.bytes);
        this.ledger.refuse(endedOf(item, sends, 0), error);
        item.ended(error instanceof Error ? error : new Error(reasonOf(error)));
      },
      retried: (items, error) => {
        this.ledger.resend(items.length);
        const cause = `durable work could not be stored: ${reasonOf(error)}`;
        this.report(cause, `${cause}. It is kept and sent again under the same ids.`);
      },
    });
  }

  /** What the store has refused for good, oldest first. */
  async rejected(): Promise<RejectedWork[]> {
    const entries = (await this.journal?.rejected()) ?? [];
    return entries.map(({ id, name, json, error, rejectedAt }) => ({
      id,
      name,
      data: fromJson(json),
      error,
      rejectedAt,
    }));
  }

  /** Sends those of the rejects that are on disk again; returns how many there was room for. */
  async resend(ids: readonly string[] | undefined): Promise<number> {
    const { journal } = this;
    if (journal === null) return 0;
    const again: string[] = [];
    for (const { error: _, rejectedAt: __, ...entry } of await journal.rejected()) {
      if (ids?.includes(entry.id) === false) continue;
      const bytes = bytesOf(entry.json);
      if (!this.room.take(bytes)) break;
      // On disk before it leaves the rejects: a crash in between sends it twice, under one id.
      const place = await journal.append(entry);
      if (place === null) {
        this.room.release(bytes);
        break;
      }
      again.push(entry.id);
      this.add(new DurableItem(entry, null, this, place));
    }
    await journal.forgetRejected(again);
    return again.length;
  }

  private reject(item: DurableItem, error: string): void {
    const { entry, place } = item;
    if (place !== null) {
      void this.journal?.reject(entry, place, error);
      return;
    }
    const { id, name, json } = entry;
    const gone = this.rejects.add({ id, name, data: fromJson(json), error, rejectedAt: Date.now() }, () => {
      if (!this.room.take(item.bytes)) return false;
      this.add(item);
      return true;
    });
    if (gone !== null) this.report(FULL_OF_REJECTS, `${FULL_OF_REJECTS}: the oldest, "${gone}", was let go.`);
  }

  /** Brings parked entries back while there is room. */
  private takeBack(): void {
    const { journal, room } = this;
    if (journal === null || this.takingBack || this.closed || journal.parked === 0) return;
    const limit = Math.min(TAKE_BACK, room.left);
    if (limit < 1) return;
    room.fill(0, limit);
    this.takingBack = true;
    void journal
      .takeParked(limit)
      .catch(() => null)
      .then((taken) => {
        const items = (taken ?? []).map(({ entry, place }) => new DurableItem(entry, null, this, place));
        room.fill(bytesOfAll(items), 0);
        for (const item of items) this.send(item);
        this.takingBack = taken === null;
        // Releasing looks for more.
        room.release(0, limit - items.length);
        if (taken !== null) return;
        setTimeout(() => {
          this.takingBack = false;
          this.takeBack();
        }, READ_AGAIN_MS).unref();
      });
  }
}

const bytesOfAll = (items: readonly DurableItem[]): number => items.reduce((sum, { bytes }) => sum + bytes, 0);

/** An item as its store gets it. */
function sentJob(entry: JournalEntry, status: number | null): NewDurableJob {
  const { id, work, name, json, requestId, route, timeoutMs, attempts, at, traceparent, options } = entry;
  const data = fromJson(json);
  return { id, work, name, data, requestId, route, status, timeoutMs, attempts, at, traceparent, options };
}

function endedOf({ entry }: DurableItem, attempt: number, runMs: number): Ended {
  const { name, requestId, route, at } = entry;
  return {
    name,
    requestId,
    route,
    durable: true,
    waitMs: Math.max(0, epochMsOf(performance.now()) - at),
    runMs,
    attempt,
  };
}
