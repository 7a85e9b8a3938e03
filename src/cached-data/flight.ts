import { backoffMs } from '../core/backoff.js';
import { inRootContext } from '../core/root-context.js';
import { PerfError } from '../core/perf.error.js';

/** One load that is under way, and all who wait for it. Settles once: by its result, or when it is late. */
export class Flight<T> {
  isOver = false;
  private resolve!: (result: T) => void;
  private reject!: (reason: unknown) => void;
  readonly result = new Promise<T>((resolve, reject) => ([this.resolve, this.reject] = [resolve, reject]));
  private readonly timer: NodeJS.Timeout;

  constructor(
    method: string,
    timeoutMs: number,
    /** It has settled, in time or not. */
    private readonly ended: () => void,
  ) {
    this.timer = inRootContext(() => setTimeout(() => this.fail(late(method, timeoutMs)), timeoutMs).unref());
  }

  land(result: T): void {
    this.end();
    this.resolve(result);
  }

  fail(reason: unknown): void {
    this.end();
    this.reject(reason);
  }

  /** From now on only its result ends it. */
  stopClock(): void {
    clearTimeout(this.timer);
  }

  private end(): void {
    this.isOver = true;
    this.stopClock();
    this.ended();
  }
}

function late(method: string, timeoutMs: number): PerfError {
  return new PerfError(
    'PERF_ERR_LOAD_TIMEOUT',
    `"${method}" was not loaded within ${timeoutMs} ms. Raise its \`timeoutMs\`, or find out why its source is slow.`,
  );
}

/** Runs `work` in no request: neither in the async context of its first caller nor on its stack. */
export const outsideRequests = <T>(work: () => T | PromiseLike<T>): Promise<T> =>
  inRootContext(async () => {
    // Node's own await: `then()` of an application's own `Promise` may run in another request's context.
    await Promise.resolve();
    return work();
  });

/** Collects the items of one turn of the event loop, until the callbacks of all promises that are settled then have run, as DataLoader does. */
export class Turn<T> {
  private items: T[] = [];

  constructor(private readonly end: (items: readonly T[]) => Promise<void>) {}

  add(item: T): void {
    if (this.items.push(item) > 1) return;
    inRootContext(() => queueMicrotask(() => process.nextTick(() => void this.end(this.items.splice(0)))));
  }
}

/** How long to wait after so many failures in a row: 1 s, 2 s, 4 s … 30 s on average. */
export const retryAfterMs = (failures: number): number => backoffMs(failures, { baseMs: 2_000, maxMs: 60_000 });
