import { LinkedList, type Linked } from '../core/linked-list.js';
import { PerfError } from '../core/perf.error.js';
import type { DeferOverflow } from './defer.options.js';

/** Why the oldest of all is dropped. */
const NEWER = 'newer work took its place';

/** Work that takes room. */
export interface Occupant extends Linked<Occupant> {
  readonly name: string;
  readonly bytes: number;
  hasRoom: boolean;
  drop(why: string): void;
}

/** A bound of items and bytes. Work takes its room when it is armed, so that work which waits for its response is bounded as well. */
export class Room {
  private items = 0;
  private bytes = 0;
  /** Work that newer work may take the place of, oldest first. */
  private readonly droppable = new LinkedList<Occupant>();
  onReleased: () => void = () => {};

  constructor(
    readonly overflow: DeferOverflow,
    private readonly maxItems: number,
    private readonly maxBytes: number = Infinity,
  ) {}

  get isEmpty(): boolean {
    return this.items === 0 && this.bytes === 0;
  }

  /** How many items more fit in. */
  get left(): number {
    return this.bytes < this.maxBytes ? this.maxItems - this.items : 0;
  }

  /** Takes an item in; false when it is full. One item alone fits in whatever its size. */
  take(item: Occupant): boolean {
    if (this.items >= this.maxItems) return false;
    if (this.items > 0 && this.bytes + item.bytes > this.maxBytes) return false;
    this.add(item);
    this.droppable.add(item);
    return true;
  }

  /** Takes an item in by the overflow policy. @throws PERF_ERR_DEFER_FULL with `'reject'` */
  takeByPolicy(item: Occupant): boolean {
    if (this.take(item)) return true;
    if (this.overflow === 'reject') throw this.makeFullError(item.name);
    // An item larger than the whole room does not fit even when all others are dropped.
    if (this.overflow === 'drop-new' || item.bytes > this.maxBytes) return false;
    while (this.droppable.first !== null) {
      this.droppable.first.drop(NEWER);
      if (this.take(item)) return true;
    }
    return false;
  }

  /** Takes in what may be neither refused nor dropped. */
  add(item: Occupant): void {
    item.hasRoom = true;
    this.items += 1;
    this.bytes += item.bytes;
  }

  /** Newer work takes its place no more: it is on disk, or on its way. */
  keep(item: Occupant): void {
    this.droppable.delete(item);
  }

  release(item: Occupant): void {
    if (!item.hasRoom) return;
    item.hasRoom = false;
    this.droppable.delete(item);
    this.items -= 1;
    this.bytes -= item.bytes;
    this.onReleased();
  }

  /** Why new work is dropped or refused. */
  get whyFull(): string {
    return this.items >= this.maxItems
      ? `${this.maxItems} were waiting already (defer.maxPending)`
      : `what waits holds nearly ${this.maxBytes} bytes already (defer.maxPendingBytes)`;
  }

  makeFullError(name: string): PerfError {
    return new PerfError(
      'PERF_ERR_DEFER_FULL',
      `no room for deferred work "${name}": ${this.whyFull}. ` +
        'Answer 503 and let the client come back, raise that bound, or choose another `defer.overflow`.',
    );
  }
}
