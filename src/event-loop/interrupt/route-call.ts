type Wait = (work: Promise<unknown>) => Promise<unknown>;

/**
 * A route function that has returned a promise, in the place of that promise: whoever calls `then` of it calls the promise's.
 *
 * V8 shows an async function that waits in a stack only where nobody else waits for the same promise. So to wait from the
 * start costs each request an async function (400 bytes and two turns of the microtask queue). This object instead
 * knows the end of the chain (what `then` gave), where {@link awaitBy} can begin to wait when somebody looks.
 *
 * Only for a framework that calls `then` once, at once, with functions of its own, and forgets what that gives: V8 follows a
 * native function to another promise than the end of the chain.
 */
export class RouteCall implements PromiseLike<unknown> {
  /** Something waits whose name stands in the stack. */
  awaited = false;
  /** It had settled when the first look came: it waits for nothing. */
  settledBefore = false;
  private handed: Promise<unknown> | null = null;

  constructor(private work: Promise<unknown>) {}

  // eslint-disable-next-line unicorn/no-thenable -- it stands for a promise
  then<A, B>(
    onFulfilled?: ((value: unknown) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const handed = this.work.then(onFulfilled, onRejected);
    this.handed = handed;
    return handed;
  }

  /** Lets `wait` wait for it, until it has settled. An error stays as unhandled as it is. Callable inside the interrupt. */
  awaitBy(wait: Wait): void {
    if (this.handed === null) this.work = wait(this.work);
    else void wait(this.handed);
  }
}
