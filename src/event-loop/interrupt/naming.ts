import { isObservable, type Observable, type ObservableInput } from 'rxjs';
import { attach } from '../../core/attachment.js';
import type { RequestState } from '../../core/request-state.js';
import { SEQ } from '../beat.js';
import type { Frame } from '../frame.js';
import { knownObservable } from '../known-observable.js';

/** How far a request is, as its route function and handler tell. */
export type Phase =
  /** No route function yet, or never one: middleware, a GraphQL server behind `app.use()`. */
  | 'before'
  /** In its route function, ahead of the handler: guards, pipes, interceptors. */
  | 'route'
  /** The handler runs, or its promise waits by name. */
  | 'handler'
  /** The handler goes on where no stack shows it: observables, thenables, callbacks. */
  | 'open'
  /** The handler is done: interceptors, serialisation. */
  | 'after'
  /** The route function is done, and the response has begun. */
  | 'done';

/** For each phase, the value of {@link Naming.changes} at which the request entered it; 0: not entered. */
export interface Progress {
  route: number;
  handler: number;
  open: number;
  after: number;
  done: number;
  /** Handlers that are not done: one may call another. */
  handlers: number;
}

const KEY = attach<Progress>('request');

/** Null while no route function was called. Safe inside the interrupt. */
export const progressOf = (state: RequestState): Progress | null => KEY.get(state);

export function beginProgress(state: RequestState): Progress {
  const known = KEY.get(state);
  if (known !== null) return known;
  const progress: Progress = { route: 0, handler: 0, open: 0, after: 0, done: 0, handlers: 0 };
  KEY.set(state, progress);
  return progress;
}

type RouteFunction = (this: unknown, a: unknown, b: unknown, c: unknown) => unknown;

/** An async function with a name of its own, and the request that it waits for. */
interface Waiter {
  readonly wait: (work: Promise<unknown>, waiter: Waiter, state: RequestState, progress: Progress, what: What) => Work;
  /** Null for the one that is shared by all who found no name. */
  readonly name: string | null;
  state: RequestState | null;
}
type What = 'route' | 'handler';
type Work = Promise<unknown>;

/** More than so many waits at once have no name. */
const MAX_NAMES = 8_192;

// What the interrupt calls is kept from before the application could replace it.
const { apply } = Reflect;
// eslint-disable-next-line typescript/unbound-method -- called with a `this`
const { get } = Map.prototype;
// eslint-disable-next-line typescript/unbound-method -- compared
const { then: nativeThen } = Promise.prototype;

/** Lets a stack show whose code runs: V8 keeps the names of async functions that wait, and here they are requests'. */
export class Naming {
  /** Whose code runs synchronously now. */
  current: RequestState | null = null;
  /** How often requests have changed their phase. */
  changes = 0;
  /** The same when the loop last turned before the newest change. */
  private changesBefore = 0;
  private changedIn = -1;
  private readonly waiters = new Map<string, Waiter>();
  private readonly free: Waiter[] = [];
  private readonly nameless = this.createWaiter(null);
  private hearSettled: ((state: RequestState) => void) | null = null;
  /** Who was the first, since the last look, to get on: its route function or handler was called, or has settled. */
  firstOn: RequestState | null = null;
  /** Others have got on as of the same callback: what it did may have been for all of them. */
  severalOn = false;
  /** Somebody has looked, and the callback in which somebody gets on since is not over. */
  private looked = false;
  /** A field, so that the compiler keeps the loop in {@link run}. */
  private turns = 1;

  constructor(
    /** Keeps the names of two applications in one process apart. */
    private readonly prefix: string,
    /** The beat's memory: in which turn of the loop something happened. */
    private readonly words: Int32Array,
  ) {}

  /** Runs a framework's route function; what it returns or throws is passed on. */
  runRoute(state: RequestState, fn: RouteFunction, self: unknown, a: unknown, b: unknown, c: unknown): unknown {
    const progress = beginProgress(state);
    if (this.looked) this.gotOn(state);
    this.enter(progress, 'route');
    const outer = this.current;
    this.current = state;
    let result: unknown;
    let done = true;
    try {
      result = fn.call(self, a, b, c);
      done = !isNativePromise(result);
      this.letLooksIn();
    } finally {
      this.current = outer;
      if (done) this.routeSettled(state, progress);
    }
    return done ? result : this.wait(state, progress, result as Work, 'route');
  }

  /** Runs a handler. A thenable is asked at once, and only once; an observable is given back as one. */
  runHandler(state: RequestState, proceed: () => unknown): unknown {
    const progress = beginProgress(state);
    if (this.looked) this.gotOn(state);
    progress.handlers += 1;
    if (progress.handlers === 1) this.enter(progress, 'handler');
    let work: Work;
    try {
      const result = this.run(state, proceed);
      if (isNativePromise(result)) work = result;
      else {
        const then = thenOf(result);
        if (then === null) {
          const source = isObservable(result) ? result : null;
          this.handlerSettled(progress);
          return source === null ? result : this.observe(state, progress, source);
        }
        this.enter(progress, 'open');
        work = this.ask(state, result, then);
      }
    } catch (error) {
      this.handlerSettled(progress);
      throw error;
    }
    return this.wait(state, progress, work, 'handler');
  }

  /** The request whose name stands in a stack, innermost first. Called inside the interrupt. */
  named(frames: readonly Pick<Frame, 'name'>[]): RequestState | null {
    for (let i = 0; i < frames.length; i++) {
      const { name } = frames[i]!;
      const waiter = name === null ? undefined : (apply(get, this.waiters, [name]) as Waiter | undefined);
      if (waiter !== undefined && waiter.state !== null) return waiter.state;
    }
    return null;
  }

  /** How often phases had changed when the loop last turned. Called inside the interrupt. */
  get changesBeforeTurn(): number {
    return this.changedIn === this.words[SEQ] ? this.changesBefore : this.changes;
  }

  /** Somebody looks: from now on the next to get on is waited for. */
  awaitFirstOn(): void {
    this.firstOn = null;
    this.severalOn = false;
    this.looked = true;
  }

  /** Hears, once, of the next request whose route function or handler settles. */
  onNextSettled(hear: (state: RequestState) => void): void {
    this.hearSettled = hear;
  }

  /** The loop has turned: nobody is waited for, and no request is kept. */
  turned(): void {
    this.firstOn = null;
    this.severalOn = false;
    this.looked = false;
    this.hearSettled = null;
  }

  private gotOn(state: RequestState): void {
    if (this.firstOn !== null) {
      if (this.firstOn !== state) this.severalOn = true;
      return;
    }
    this.firstOn = state;
    // Ticks come when the callback's promises have settled. Nothing of an interrupt calls this.
    // eslint-disable-next-line no-restricted-properties
    process.nextTick(() => (this.looked = false));
  }

  private run<T>(state: RequestState, work: () => T): T {
    const outer = this.current;
    this.current = state;
    try {
      const result = work();
      this.letLooksIn();
      return result;
    } finally {
      this.current = outer;
    }
  }

  /** V8 serves a look at the back edge of a loop: one that a native call has held up is served here. */
  private letLooksIn(): void {
    for (let i = this.turns; i > 0; i--) this.turns = i;
  }

  private ask(state: RequestState, thenable: unknown, then: () => unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.run(state, () => apply(then, thenable, [resolve, reject]));
    });
  }

  private observe(state: RequestState, progress: Progress, source: ObservableInput<unknown>): Observable<unknown> {
    progress.handlers += 1;
    this.enter(progress, 'open');
    let ended = false;
    return knownObservable(
      source,
      (work) => this.run(state, work),
      () => {
        if (!ended) this.handlerSettled(progress);
        ended = true;
      },
    );
  }

  private wait(state: RequestState, progress: Progress, work: Work, what: What): Work {
    const waiter = this.takeWaiter();
    if (waiter.name !== null) waiter.state = state;
    return waiter.wait(work, waiter, state, progress, what);
  }

  private takeWaiter(): Waiter {
    const { waiters } = this;
    const free = this.free.pop();
    if (free !== undefined) return free;
    if (waiters.size >= MAX_NAMES) return this.nameless;
    const name = `${this.prefix}${waiters.size}`;
    const waiter = this.createWaiter(name);
    waiters.set(name, waiter);
    return waiter;
  }

  private createWaiter(name: string | null): Waiter {
    const wait: Waiter['wait'] = async (work, waiter, state, progress, what) => {
      let value: unknown;
      try {
        value = await work;
      } catch (error) {
        this.settled(waiter, state, progress, what);
        throw error;
      }
      this.settled(waiter, state, progress, what);
      return what === 'handler' && isObservable(value) ? this.observe(state, progress, value) : value;
    };
    if (name !== null) Object.defineProperty(wait, 'name', { value: name });
    return { wait, name, state: null };
  }

  private settled(waiter: Waiter, state: RequestState, progress: Progress, what: What): void {
    if (this.looked) this.gotOn(state);
    const hear = this.hearSettled;
    this.hearSettled = null;
    hear?.(state);
    if (what === 'route') this.routeSettled(state, progress);
    else this.handlerSettled(progress);
    if (waiter.name === null) return;
    waiter.state = null;
    this.free.push(waiter);
  }

  private handlerSettled(progress: Progress): void {
    progress.handlers -= 1;
    if (progress.handlers === 0) this.enter(progress, 'after');
  }

  /** A route function that is done without an answer has left it to a callback. */
  private routeSettled(state: RequestState, progress: Progress): void {
    this.enter(progress, progress.handlers === 0 && hasAnswer(state) ? 'done' : 'open');
  }

  private enter(progress: Progress, phase: Exclude<Phase, 'before'>): void {
    const seq = this.words[SEQ]!;
    if (seq !== this.changedIn) {
      this.changesBefore = this.changes;
      this.changedIn = seq;
    }
    this.changes += 1;
    progress[phase] = this.changes;
  }
}

/** One that an `await` asks as the engine does: its `then` is nobody's own. */
const isNativePromise = (value: unknown): value is Work => value instanceof Promise && value.then === nativeThen;

function thenOf(value: unknown): (() => unknown) | null {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return null;
  const { then } = value as { then?: unknown };
  return typeof then === 'function' ? (then as () => unknown) : null;
}

/** The response is the application's: reading it may throw. */
function hasAnswer({ response }: RequestState): boolean {
  try {
    return response === null || response.headersSent;
  } catch {
    return false;
  }
}
