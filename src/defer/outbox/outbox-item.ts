import { PerfError } from '../../core/perf.error.js';
import type { Counters, Ended } from '../counters.js';
import type { DeferWhen } from '../deferred-work.js';
import { countBytes } from '../durable/entry.js';
import { Item } from '../item.js';
import type { Place } from '../spill/segment.js';
import type { Room } from '../room.js';

/** Work that leaves this process: durable work, or a job for the application's own queue. */
export interface Parcel extends Pick<Ended, 'requestId' | 'route'> {
  readonly id: string;
  readonly name: string;
  readonly json: string | undefined;
}

interface Owner<P extends Parcel> {
  readonly durable: boolean;
  readonly room: Room;
  readonly shared: { readonly counters: Counters };
  readonly closed: boolean;
  add(item: OutboxItem<P>): void;
  forget(items: readonly OutboxItem<P>[]): void;
}

export class OutboxItem<P extends Parcel = Parcel> extends Item {
  /** On disk; null while it is not, or not yet. */
  place: Place | null = null;
  written?: Promise<PerfError | null>;

  constructor(
    private readonly outbox: Owner<P>,
    public parcel: P,
    when: DeferWhen | null = null,
    /** Called with null once it is stored. */
    readonly ended: (error: Error | null) => void = () => {},
  ) {
    super(parcel.name, when, countBytes(parcel.json), outbox.durable, outbox.room, outbox.shared.counters);
  }

  get names(): P {
    return this.parcel;
  }

  /** Frees the memory of data that is on disk. */
  dropData(): void {
    this.parcel = { ...this.parcel, json: undefined };
  }

  protected override accept(): void {
    this.outbox.add(this);
  }

  override discard(): void {
    super.discard();
    this.outbox.forget([this]);
  }

  override drop(why: string): void {
    super.drop(why);
    const code = this.outbox.closed ? 'PERF_ERR_STORE' : 'PERF_ERR_DEFER_FULL';
    this.ended(new PerfError(code, `"${this.name}" was not stored: ${why}.`));
  }
}
