import { reasonOf } from '../../core/reason.js';
import type { Capacity } from '../capacity.js';
import type { Counters, Ended } from '../counters.js';
import type { DeferWhen } from '../deferred-work.js';
import type { Armed } from '../request-work.js';
import type { Place } from '../spill/segment.js';
import { BulkSender, type BatchLimits } from './bulk-sender.js';
import { bytesOf, fromJson } from './json.js';
import { FULL_OF_REJECTS, type Rejects } from './rejects.js';

/** What leaves this process: durable work, or a job for the application's own queue. */
export interface Parcel {
  readonly id: string;
  /** In records and reports. */
  readonly name: string;
  /** Its data, taken when it was armed. */
  readonly json: string | undefined;
  readonly requestId: string | null;
  readonly route: string | null;
}

/** What all outboxes of an application share. */
export interface OutboxShared {
  readonly limits: BatchLimits;
  readonly counters: Counters;
  readonly rejects: Rejects;
  report(cause: string, message: string): void;
}

/** One parcel, from the moment it is armed. */
export class OutboxItem<P extends Parcel = Parcel> implements Armed {
  /** Final status of the response; null when it is replayed. */
  status: number | null = null;
  /** Monotonic milliseconds at which the response had ended. */
  acceptedMs = performance.now();
  /** In the order in which they were added. */
  number = 0;

  constructor(
    private readonly outbox: Outbox<P>,
    readonly parcel: P,
    readonly when: DeferWhen | null = null,
    /** Where it stands on disk; null when it does not. */
    readonly place: Place | null = null,
    /** Hears how it has ended: null once it is stored. */
    readonly ended: (error: Error | null) => void = () => {},
  ) {}

  get bytes(): number {
    return bytesOf(this.parcel.json);
  }

  commit(status: number | null): void {
    this.status = status;
    this.outbox.add(this);
  }

  discard(): void {
    this.outbox.discard(this);
  }
}

/** A bounded buffer in front of a queue or store: what is in it is sent in micro-batches until it is stored or refused. */
export abstract class Outbox<P extends Parcel = Parcel> {
  /** In reports, for example `jobs for queue "mail"`. */
  protected abstract readonly what: string;
  /** A worker writes the record, rather than who stores it. */
  protected abstract readonly durable: boolean;
  private readonly lanes = new Map<string, BulkSender<OutboxItem<P>>>();
  private count = 0;
  protected closed = false;

  constructor(
    readonly capacity: Capacity,
    protected readonly shared: OutboxShared,
  ) {}

  /** Takes over an item that has its capacity. */
  add(item: OutboxItem<P>): void {
    item.acceptedMs = performance.now();
    this.shared.counters.move(null, 'buffered');
    if (!this.closed) this.send(item);
    // What is on disk stays there, and is sent at the next start.
    else if (item.place === null) this.drop(item, 'the application has closed');
  }

  /** Gives back the capacity of an item that need not run. */
  discard({ place, bytes }: OutboxItem<P>): void {
    if (place !== null) this.strike([place]);
    this.capacity.release(bytes);
  }

  /** Drops the item in memory that has waited longest; false when all are on their way. What is on disk has its place there. */
  dropOldest(): boolean {
    const waiting = [...this.lanes.values()].flatMap((lane) => {
      const item = lane.oldest(({ place }) => place === null);
      return item === undefined ? [] : [{ lane, item }];
    });
    const [first] = waiting.toSorted((a, b) => a.item.number - b.item.number);
    if (first === undefined) return false;
    first.lane.take(first.item);
    this.drop(first.item, 'newer work took its place');
    return true;
  }

  flush(): void {
    for (const lane of this.lanes.values()) lane.flush();
  }

  /** Stops, and drops what is nowhere else; returns its names. */
  close(reason: string): string[] {
    this.closed = true;
    const lost = [...this.lanes.values()].flatMap((lane) => lane.close()).filter(({ place }) => place === null);
    for (const item of lost) this.drop(item, reason);
    return lost.map(({ parcel }) => parcel.name);
  }

  /** Parcels of one lane may travel in one bulk; `limits` null: those of `defer.batch`. */
  protected abstract laneOf(parcel: P): { readonly key: string; readonly limits: BatchLimits | null };
  /** Stores all of them; called again with the same ones after a failure. */
  protected abstract store(items: readonly OutboxItem<P>[]): Promise<unknown>;

  protected send(item: OutboxItem<P>): void {
    item.number = this.count++;
    const { key, limits } = this.laneOf(item.parcel);
    let lane = this.lanes.get(key);
    if (lane === undefined) {
      lane = this.newLane(limits ?? this.shared.limits);
      this.lanes.set(key, lane);
    }
    lane.add(item);
  }

  private newLane(limits: BatchLimits): BulkSender<OutboxItem<P>> {
    const { shared } = this;
    return new BulkSender<OutboxItem<P>>(limits, {
      send: (items) => this.store(items),
      stored: (items, sends, sentMs) => this.stored(items, sends, sentMs),
      refused: (item, sends, error) => this.refused(item, sends, error),
      retried: (items, error) => {
        shared.counters.retry(items.length);
        const cause = `${this.what} could not be stored: ${reasonOf(error)}`;
        shared.report(cause, `${cause}. All is kept, and sent again under the same ids.`);
      },
    });
  }

  private stored(items: readonly OutboxItem<P>[], sends: number, sentMs: number): void {
    const { counters } = this.shared;
    this.strike(items.flatMap(({ place }) => place ?? []));
    if (!this.durable) for (const item of items) counters.record(this.endedOf(item, sends, sentMs), 'completed');
    counters.move('buffered', 'stored', items.length);
    this.capacity.release(
      items.reduce((sum, { bytes }) => sum + bytes, 0),
      items.length,
    );
    for (const item of items) item.ended(null);
  }

  private refused(item: OutboxItem<P>, sends: number, error: unknown): void {
    this.reject(item, reasonOf(error));
    this.capacity.release(item.bytes);
    this.shared.counters.fail('buffered', this.endedOf(item, sends, 0), error);
    item.ended(error instanceof Error ? error : new Error(reasonOf(error)));
  }

  /** They need not be on disk any more. */
  protected strike(_places: readonly Place[]): void {}

  /** Among the rejects it can be read, and sent again. */
  protected reject({ parcel }: OutboxItem<P>, error: string): void {
    const { id, name, json } = parcel;
    const rejected = { id, name, data: fromJson(json), error, rejectedAt: Date.now() };
    const gone = this.shared.rejects.add(rejected, () => {
      if (!this.capacity.take(bytesOf(json))) return false;
      this.add(new OutboxItem(this, parcel));
      return true;
    });
    if (gone !== null) this.shared.report(FULL_OF_REJECTS, `${FULL_OF_REJECTS}: the oldest, "${gone}", was let go.`);
  }

  private drop(item: OutboxItem<P>, why: string): void {
    this.capacity.release(item.bytes);
    this.shared.counters.drop('buffered', this.endedOf(item, 1, 0), why);
    item.ended(new Error(why));
  }

  private endedOf({ parcel, acceptedMs }: OutboxItem<P>, attempt: number, runMs: number): Ended {
    const { name, requestId, route } = parcel;
    const { durable } = this;
    const waitMs = Math.max(0, performance.now() - runMs - acceptedMs);
    return { name, requestId, route, durable, waitMs, runMs, attempt };
  }
}
