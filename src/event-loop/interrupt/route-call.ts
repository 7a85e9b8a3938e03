import type { Settling } from '../../core/request-state.js';

type Wait<Place> = (work: Promise<unknown>, place: Place) => Promise<unknown>;

/**
 * A route function that has returned a promise, in the place of that promise: whoever calls `then` of it calls the promise's.
 *
 * V8 shows an async function that waits in a stack only where nobody else waits for the same promise. So to wait from the
 * start costs each request an async function (400 bytes and two turns of the microtask queue). This object instead
 * knows the end of the chain (what `then` gave), where {@link awaitBy} can begin to wait when somebody looks.
 *
 * Only for a framework that calls `then` once, at once, and forgets what that gives.
 */
export class RouteCall implements PromiseLike<unknown>, Settling {
  settled = false;
  /** Something waits whose name stands in the stack. */
  awaited = false;
  private asked = false;
  private handed: Promise<unknown> | null = null;

  constructor(private work: Promise<unknown>) {}

  // eslint-disable-next-line unicorn/no-thenable -- it stands for a promise
  then<A, B>(
    onFulfilled?: ((value: unknown) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.asked = true;
    // Not worth a second function: Nest answers errors itself. What is rejected all the same counts as not settled.
    const handed = this.work.then((value) => {
      this.settled = true;
      return typeof onFulfilled === 'function' ? onFulfilled(value) : (value as A);
    }, onRejected);
    this.handed = handed;
    return handed;
  }

  /** Lets `wait` wait for it until it has settled; an error stays unhandled. Whether it does. Callable inside the interrupt. */
  awaitBy<Place>(wait: Wait<Place>, place: Place): boolean {
    if (!this.asked) this.work = wait(this.work, place);
    else if (this.handed !== null) void wait(this.handed, place);
    // The application's own `Promise.prototype.then` is being called.
    else return false;
    return true;
  }
}
