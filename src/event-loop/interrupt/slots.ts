import type { RequestState } from '../../core/request-state.js';
import type { Frame } from '../frame.js';
import type { Identity, Source } from './probe.js';
import { RouteCall } from './route-call.js';

type RouteFunction = (this: unknown, first: unknown, second: unknown, third: unknown) => unknown;
type Waiter = (work: Promise<unknown>, slot: Slot) => Promise<unknown>;

/** One waiting place: while its request's route function has not settled, its name stands in that request's stacks. */
interface Slot {
  /** Null for one beyond those that there may be: it has no name. */
  readonly wait: Waiter | null;
  state: RequestState | null;
  next: Slot | null;
}
/** Calls `visit` for each request in flight. */
type InFlight = (visit: (state: RequestState) => void) => void;

/** Beyond this many requests in flight at once, further ones are not named. */
const MAX_SLOTS = 4_096;

/**
 * Tells from a stack which request runs, without the context store. V8 keeps the chain of waiting async functions for
 * nothing, and shows each one's `name`; so each request's route function is awaited by a function whose name is the
 * request's slot, out of a pool of such functions, made when they are first needed. Where it can be ({@link RouteCall}) that
 * begins when somebody looks, and costs a request that nobody looks at next to nothing.
 *
 * It knows what the chain knows: not timers, event emitters or thenables that leave it.
 *
 * A look takes slots while the application's code is interrupted, which can be wherever a function of this class is entered
 * or loops: nowhere between a read and the write that belongs to it.
 */
export class Slots implements Identity {
  source: Source | null = null;
  private onDemand = false;
  /** Whose route function runs synchronously now. */
  private current: RequestState | null = null;
  private readonly byName = new Map<string, Slot>();
  /** The same ones, to be walked without an iterator. */
  private readonly slots: Slot[] = [];
  private free: Slot | null = null;
  /** A look that came too late to see its request: the next route function to settle is its likely culprit. */
  private late: ((state: RequestState) => void) | null = null;
  /** Not a constant, so that the compiler keeps the loop that lets pending looks in. */
  private turns = 1;

  /** `prefix` keeps the names of two applications in one process apart. */
  constructor(
    private readonly prefix: string,
    private readonly inFlight: InFlight,
  ) {}

  /**
   * Calls a function for `state`. What it returns or throws is passed on; a promise as a {@link RouteCall} where `outermost`: nobody
   * gets it but a framework.
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
    outermost: boolean,
  ): unknown {
    const outer = this.current;
    this.current = state;
    let result: unknown;
    try {
      result = handler.call(self, first, second, third);
      // Interrupts are served at the back edge of a loop: a look that waited for a native call lands here, with its culprit.
      for (let i = this.turns; i > 0; i--) this.turns = i;
    } finally {
      this.current = outer;
    }
    if (!(result instanceof Promise)) return result;
    // Of one that has ended nobody would find the call.
    if (!outermost || !this.onDemand || state.closed) return this.wait(state, result);
    return (state.routeCall = new RouteCall(result));
  }

  private wait(state: RequestState, work: Promise<unknown>): Promise<unknown> {
    const slot = this.take(state);
    return slot.wait === null ? work : slot.wait(work, slot);
  }

  /**
   * Whether to wait only when somebody looks; at first not. Waiting makes promises, so in an application that hears of each
   * (`async_hooks`) its code would run inside the interrupt.
   */
  waitOnDemand(on: boolean): void {
    if (this.onDemand && !on) this.show();
    this.onDemand = on;
  }

  /** From now on the stacks of all requests in flight show whose they are. Callable inside the interrupt. */
  show(): void {
    if (!this.onDemand) return;
    this.inFlight(this.showRequest);
  }

  /** The same for one request, which may no longer be in flight. */
  readonly showRequest = (state: RequestState): void => {
    const call = state.routeCall as RouteCall | null;
    if (call === null || call.settled || call.awaited) return;
    call.awaited = true;
    let slot: Slot | null = null;
    let waits = false;
    try {
      slot = this.take(state);
      waits = slot.wait !== null && call.awaitBy(slot.wait, slot);
    } finally {
      // Near the end of the stack, say: nothing waits, so nothing would give the slot back. There may be no room for a call here.
      if (!waits) {
        call.awaited = false;
        if (slot !== null && slot.wait !== null) {
          slot.state = null;
          slot.next = this.free;
          this.free = slot;
        }
      }
    }
  };

  of(frames: readonly Frame[]): RequestState | null {
    if (this.current !== null) {
      this.source = 'sync';
      return this.current;
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

  /** Whether the request's route function waits for something. */
  waits(state: RequestState): boolean {
    if (state.routeCall !== null && !state.routeCall.settled) return true;
    for (let i = 0; i < this.slots.length; i++) if (this.slots[i]!.state === state) return true;
    return false;
  }

  /** Hears, once, of the next request whose route function settles. */
  onNextSettled(hear: ((state: RequestState) => void) | null): void {
    this.late = hear;
  }

  private take(state: RequestState): Slot {
    const slot = this.free ?? this.create();
    this.free = slot.next;
    slot.state = state;
    return slot;
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
    // No method: the application may have put its own in its place.
    this.slots[this.slots.length] = slot;
    return slot;
  }

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
}
