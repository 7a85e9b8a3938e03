import type { RequestState } from '../../core/request-state.js';
import type { Frame } from '../frame.js';
import type { Identity, Source } from './probe.js';

type RouteFunction = (this: unknown, first: unknown, second: unknown, third: unknown) => unknown;
type Waiter = (work: Promise<unknown>, slot: Slot) => Promise<unknown>;

/** One waiting place: while its request's route function has not settled, its name stands in that request's stacks. */
interface Slot {
  /** Null for one beyond those that there may be: it has no name. */
  readonly wait: Waiter | null;
  state: RequestState | null;
  next: Slot | null;
}

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
   * Calls a route function for `state`. What it returns or throws is passed on.
   *
   * Short, like what it calls: V8 compiles it into Fastify's call of the handler, and Nest's route function too while there is room
   * for it (`--max-inlined-bytecode-size-cumulative`; `--trace-turbo-inlining` tells).
   */
  run(
    state: RequestState,
    handler: RouteFunction,
    self: unknown,
    first: unknown,
    second: unknown,
    third: unknown,
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
      // Interrupts are served at the back edge of a loop: a look that waited for a native call lands here, with its culprit.
      for (let i = this.turns; i > 0; i--) this.turns = i;
    } catch (error) {
      this.current = outer;
      this.release(slot);
      throw error;
    }
    this.current = outer;
    if (result instanceof Promise && slot.wait !== null) return slot.wait(result, slot);
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
    const wait: Waiter = async (work, slot) => {
      try {
        return await work;
      } finally {
        this.settled(slot);
      }
    };
    Object.defineProperty(wait, 'name', { value: name });
    const slot: Slot = { wait, state: null, next: null };
    this.byName.set(name, slot);
    this.slots.push(slot);
    return slot;
  }

  /** The same as {@link release}, of one that has a name. */
  private settled(slot: Slot): void {
    if (this.late !== null) this.tellLate(slot);
    slot.state = null;
    slot.next = this.free;
    this.free = slot;
  }

  private tellLate({ state }: Slot): void {
    if (state !== null) this.late?.(state);
    this.late = null;
  }

  private release(slot: Slot): void {
    slot.state = null;
    if (slot.wait === null) return;
    slot.next = this.free;
    this.free = slot;
  }
}
