import { LinkedList, type Linked } from '../core/linked-list.js';
import { PerfError } from '../core/perf.error.js';
import { describeUnstarted, type Counters, type Ended, type ItemState } from './counters.js';
import type { DeferOverflow } from './defer.options.js';
import type { DeferWhen } from './deferred-work.js';

/** One call of a decorated handler: the work that it has armed refers to it. */
export interface HandlerCall {
  /** The works of its decorators: the same object for each call of the handler. */
  readonly works: object;
  /** How much work its request had armed when the call began. */
  readonly armedBefore: number;
  /** An interceptor may call the handler again: its work is then armed anew. */
  readonly hasFailed: boolean;
}

/** Work of a request that is still open: its end either commits or discards the work, once. */
export interface Armed {
  readonly name: string;
  /** Null, the default: as `'success'`; as `'always'` for work that is armed after the request's end. */
  readonly when: DeferWhen | null;
  /** Delays the response until the work is on disk. Resolves with null, or with the error for which a route answers 503; never rejects. */
  readonly written?: Promise<PerfError | null>;
  /** The list that holds it: `drop()` takes it out there. */
  waitsIn?: Armed[] | null;
  /** Null for work that no decorator has armed. */
  call?: HandlerCall | null;
  commit(status: number | null): void;
  discard(): void;
}

/** One piece of work, from the moment it is armed until its end: it takes room, and counts in one state. */
export abstract class Item implements Armed, Linked<Item> {
  previous: Item | null = null;
  next: Item | null = null;
  /** Final status of the response; null outside a request, and for work that a crash has left on disk. */
  status: number | null = null;
  acceptedMs = performance.now();
  waitsIn: Armed[] | null = null;
  call: HandlerCall | null = null;
  hasRoom = false;
  /** It was dropped, discarded or stored. */
  isOver = false;
  /** Null while it is armed: it counts from its acceptance on. */
  state: ItemState | null = null;

  constructor(
    readonly name: string,
    readonly when: DeferWhen | null,
    readonly bytes: number,
    readonly durable: boolean,
    readonly room: Room,
    private readonly counters: Counters,
  ) {}

  /** The request that armed it, for its record. */
  abstract readonly request: Pick<Ended, 'requestId' | 'route'>;

  /** Hands it to its queue or outbox. */
  protected abstract accept(): void;

  commit(status: number | null): void {
    if (this.isOver) return;
    this.status = status;
    this.acceptedMs = performance.now();
    this.accept();
  }

  /** Takes its room; false when the overflow policy drops it, which is then counted. @throws PERF_ERR_DEFER_FULL with `'reject'` */
  takeRoom(): boolean {
    const { room } = this;
    if (room.takeByPolicy(this)) return true;
    this.counters.end(null, this.describeEnd(), 'dropped', room.whyFull);
    return false;
  }

  enter(state: ItemState): void {
    this.counters.move(this.state, state);
    this.state = state;
  }

  end(outcome: 'completed' | 'failed' | 'timeout', error: unknown, ended: Ended): void {
    this.counters.end(this.state, ended, outcome, error);
  }

  discard(): void {
    this.isOver = true;
    this.room.release(this);
  }

  drop(why: string, attempt = 1): void {
    const at = this.waitsIn?.indexOf(this) ?? -1;
    if (at >= 0) this.waitsIn!.splice(at, 1);
    this.discard();
    this.counters.end(this.state, this.describeEnd(null, 0, attempt), 'dropped', why);
  }

  /** Its record. `startedMs` null: it has not started. */
  describeEnd(startedMs: number | null = null, runMs = 0, attempt = 1): Ended {
    const waitMs = Math.max(0, (startedMs ?? performance.now()) - this.acceptedMs);
    return {
      ...describeUnstarted(this.name, this.request, this.durable),
      waitMs,
      runMs,
      attempt: Math.max(1, attempt),
    };
  }
}

const REPLACED = 'newer work took its place';

/** A bound of items and bytes. An item takes room when it is armed: work of requests that are still open is bounded as well. */
export class Room {
  private items = 0;
  private bytes = 0;
  /** Items that `'drop-old'` may drop, oldest first. */
  private readonly droppable = new LinkedList<Item>();
  onReleased: () => void = () => {};

  constructor(
    readonly overflow: DeferOverflow,
    private readonly maxItems: number,
    private readonly maxBytes: number = Infinity,
  ) {}

  get isEmpty(): boolean {
    return this.items === 0;
  }

  /** How many more items fit in. */
  get left(): number {
    return this.bytes < this.maxBytes ? this.maxItems - this.items : 0;
  }

  /** False when it is full. One item alone fits in whatever its size. */
  tryTake(item: Item): boolean {
    if (this.items >= this.maxItems) return false;
    if (this.items > 0 && this.bytes + item.bytes > this.maxBytes) return false;
    this.takeAnyway(item);
    this.droppable.add(item);
    return true;
  }

  /** False when the overflow policy drops the item. @throws PERF_ERR_DEFER_FULL with `'reject'` */
  takeByPolicy(item: Item): boolean {
    if (this.tryTake(item)) return true;
    if (this.overflow === 'reject') throw this.makeFullError(item.name);
    // An item larger than the whole room does not fit even when all others are dropped.
    if (this.overflow === 'drop-new' || item.bytes > this.maxBytes) return false;
    while (this.droppable.first !== null) {
      this.droppable.first.drop(REPLACED);
      if (this.tryTake(item)) return true;
    }
    return false;
  }

  /** For accepted work that comes back: it can be neither refused nor dropped. */
  takeAnyway(item: Item): void {
    item.hasRoom = true;
    this.items += 1;
    this.bytes += item.bytes;
  }

  /** From here on `'drop-old'` cannot drop it: it is on disk, or on its way. */
  pin(item: Item): void {
    this.droppable.delete(item);
  }

  release(item: Item): void {
    if (!item.hasRoom) return;
    item.hasRoom = false;
    this.droppable.delete(item);
    this.items -= 1;
    this.bytes -= item.bytes;
    this.onReleased();
  }

  get whyFull(): string {
    return this.items >= this.maxItems
      ? `the limit of ${this.maxItems} waiting items leaves no room (defer.maxPending)`
      : `the limit of ${this.maxBytes} waiting bytes leaves no room (defer.maxPendingBytes)`;
  }

  makeFullError(name: string): PerfError {
    return new PerfError(
      'PERF_ERR_DEFER_FULL',
      `no room for deferred work "${name}": ${this.whyFull}. ` +
        'Answer 503 and let the client come back, raise that bound, or choose another `defer.overflow`.',
    );
  }
}
