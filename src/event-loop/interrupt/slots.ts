import type { RequestState } from '../../core/request-state.js';
import type { Frame } from '../frame.js';
import type { Identity, Source } from './probe.js';

type RouteFunction = (this: unknown, first: unknown, second: unknown, third: unknown) => unknown;
type Settle = (value: unknown) => unknown;
type Waiter = (work: Promise<unknown>, slot: Slot, fulfilled: Settle, rejected: Settle) => Promise<unknown>;

/** One waiting place: while its request's route function has not settled, its name stands in that request's stacks. */
interface Slot {
  /** Null for one beyond those that there may be: it has no name. */
  readonly wait: Waiter | null;
  state: RequestState | null;
  next: Slot | null;
}

/** What a promise does, it does; but it begins to wait in its slot when it is told what to do then. */
class Waiting {
  // Declared: initialisers would be a function more to inline, a request.
  declare private slot: Slot | null;
  declare private readonly work: Promise<unknown>;

  constructor(slot: Slot, work: Promise<unknown>) {
    this.slot = slot;
    this.work = work;
  }

  // eslint-disable-next-line unicorn/no-thenable -- it stands for a promise
  then(fulfilled?: Settle | null, rejected?: Settle | null): Promise<unknown> {
    const { slot, work } = this;
    if (slot === null) return work.then(fulfilled, rejected);
    this.slot = null;
    return slot.wait!(work, slot, fulfilled ?? pass, rejected ?? fail);
  }
}
// Its `catch()` and `finally()` call `then()`.
Object.setPrototypeOf(Waiting.prototype, Promise.prototype);

/** Beyond this many requests in flight at once, further ones are not named. */
const MAX_SLOTS = 4_096;

/**
 * Tells from a stack which request runs, without the context store. V8 keeps the chain of waiting async functions for
 * nothing, and shows each one's `name`; so each request's route function is awaited by a function whose name is the
 * request's slot. A pool of such functions, made when they are first needed, costs a request the await of one more function (of
 * two with an asynchronous handler).
 *
 * It knows what the chain knows: not timers, event emitters or thenables that leave it.
 */
export class Slots implements Identity {
  source: Source | null = null;
  /** Of the request whose route function runs synchronously now. */
  private current: Slot | null = null;
  private readonly byName = new Map<string, Slot>();
  /** The same ones, to be walked without an iterator. */
  private readonly slots: Slot[] = [];
  private free: Slot | null = null;
  /** A look that came too late to see its request: the next route function to settle is its likely culprit. */
  private late: ((state: RequestState) => void) | null = null;
  /** Not a constant, so that the compiler keeps the loop that lets pending looks in. */
  private turns = 1;

  /** `prefix` keeps the names of two applications in one process apart. */
  constructor(private readonly prefix: string) {}

  /**
   * Calls a route function for `state`. What it returns or throws is passed on; `thenable`: to somebody who does but one thing with
   * an asynchronous result, to call its `then()` at once, with both functions. The waiting one then calls them itself, which spares
   * a promise and a turn of the microtask queue, and names the request while they run.
   */
  run(
    state: RequestState,
    handler: RouteFunction,
    self: unknown,
    first: unknown,
    second: unknown,
    third: unknown,
    thenable: boolean,
  ): unknown {
    const outer = this.current;
    const slot = this.free ?? this.create();
    this.free = slot.next;
    slot.state = state;
    // The slot and not the request: what is old pointing to what is new costs a note for the garbage collector.
    this.current = slot;
    let result: unknown;
    try {
      result = handler.call(self, first, second, third);
    } catch (error) {
      this.current = outer;
      this.release(slot);
      throw error;
    }
    this.letLooksIn();
    this.current = outer;
    if (result instanceof Promise && slot.wait !== null) {
      const waiting = new Waiting(slot, result);
      return thenable ? waiting : waiting.then(pass, fail);
    }
    this.release(slot);
    return result;
  }

  of(frames: readonly Frame[]): RequestState | null {
    if (this.current !== null) {
      this.source = 'sync';
      return this.current.state;
    }
    for (let i = 0; i < frames.length; i++) {
      const { name } = frames[i]!;
      const slot = name === null ? undefined : this.byName.get(name);
      if (slot !== undefined && slot.state !== null) {
        this.source = 'slot';
        return slot.state;
      }
    }
    this.source = null;
    return null;
  }

  /** Whether the request's route function waits in a slot. */
  waits(state: RequestState): boolean {
    for (let i = 0; i < this.slots.length; i++) if (this.slots[i]!.state === state) return true;
    return false;
  }

  /** Hears, once, of the next request whose route function settles. */
  onNextSettled(hear: ((state: RequestState) => void) | null): void {
    this.late = hear;
  }

  private create(): Slot {
    if (this.byName.size >= MAX_SLOTS) return { wait: null, state: null, next: null };
    const name = `${this.prefix}${this.byName.size}`;
    const wait: Waiter = async (work, slot, fulfilled, rejected) => {
      let value: unknown;
      try {
        value = await work;
      } catch (error) {
        return this.settled(slot, rejected, error);
      }
      return this.settled(slot, fulfilled, value);
    };
    Object.defineProperty(wait, 'name', { value: name });
    const slot: Slot = { wait, state: null, next: null };
    this.byName.set(name, slot);
    this.slots.push(slot);
    return slot;
  }

  private settled(slot: Slot, settle: Settle, value: unknown): unknown {
    if (this.late !== null) {
      this.late(slot.state!);
      this.late = null;
    }
    try {
      return settle(value);
    } finally {
      this.release(slot);
    }
  }

  private release(slot: Slot): void {
    slot.state = null;
    if (slot.wait === null) return;
    slot.next = this.free;
    this.free = slot;
  }

  /** Interrupts are served at the back edge of a loop: a look that waited for a native call lands here, with its culprit. */
  private letLooksIn(): void {
    for (let i = this.turns; i > 0; i--) this.turns = i;
  }
}

const pass = (value: unknown): unknown => value;
const fail = (error: unknown): never => {
  throw error;
};
