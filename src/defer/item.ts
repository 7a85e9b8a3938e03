import type { PerfError } from '../core/perf.error.js';
import { unstarted, type Counters, type Ended, type ItemState } from './counters.js';
import type { DeferWhen } from './deferred-work.js';
import type { Occupant, Room } from './room.js';

/** The call of a decorated handler that has armed work. */
export interface HandlerCall {
  readonly works: object;
  /** How many works its request had armed when it began. */
  readonly place: number;
  /** It may be tried again. */
  readonly hasFailed: boolean;
}

/** Work that was armed during a request; it is either committed or discarded, once. */
export interface Armed {
  readonly name: string;
  /** Null is the default: success while the request is open, anything once it has been decided. */
  readonly when: DeferWhen | null;
  /** Resolves, and never rejects, when it is on disk, or not in time: with why a route answers 503 then. The answer waits for it. */
  readonly written?: Promise<PerfError | null>;
  /** The line in which it waits. */
  line?: Armed[] | null;
  /** The call of a decorated handler that has armed it. */
  call?: HandlerCall | null;
  commit(status: number | null): void;
  discard(): void;
}

/** One piece of work, from the moment it is armed until its end: it takes room, and is counted in one place. */
export abstract class Item implements Armed, Occupant {
  previous: Occupant | null = null;
  next: Occupant | null = null;
  /** Final status of the response; null outside a request, and when it is replayed. */
  status: number | null = null;
  acceptedMs = performance.now();
  line: Armed[] | null = null;
  call: HandlerCall | null = null;
  hasRoom = false;
  /** It was dropped or discarded, or has left this process. */
  isOver = false;
  /** State in which it is counted; null while it is armed. */
  state: ItemState | null = null;

  constructor(
    readonly name: string,
    readonly when: DeferWhen | null,
    readonly bytes: number,
    readonly durable: boolean,
    readonly room: Room,
    private readonly counters: Counters,
  ) {}

  abstract readonly names: Pick<Ended, 'requestId' | 'route'>;

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

  /** Counts it there instead of where it was. */
  enter(state: ItemState): void {
    this.counters.move(this.state, state);
    this.state = state;
  }

  /** It has run; or a queue or store has taken it, or refuses it for good. */
  end(outcome: 'completed' | 'failed' | 'timeout', error: unknown, ended: Ended): void {
    this.counters.end(this.state, ended, outcome, error);
  }

  discard(): void {
    this.isOver = true;
    this.room.release(this);
  }

  drop(why: string, attempt = 1): void {
    const at = this.line?.indexOf(this) ?? -1;
    if (at >= 0) this.line!.splice(at, 1);
    this.discard();
    this.counters.end(this.state, this.describeEnd(null, 0, attempt), 'dropped', why);
  }

  /** For its record. `startedMs` null: it has not started. */
  describeEnd(startedMs: number | null = null, runMs = 0, attempt = 1): Ended {
    const waitMs = Math.max(0, (startedMs ?? performance.now()) - this.acceptedMs);
    return { ...unstarted(this.name, this.names, this.durable), waitMs, runMs, attempt: Math.max(1, attempt) };
  }
}
