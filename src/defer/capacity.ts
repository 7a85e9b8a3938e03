import { PerfError } from '../core/perf.error.js';
import type { DeferOverflow } from './defer.options.js';

/** Why the oldest of all is dropped. */
export const NEWER = 'newer work took its place';

/** A bound of items and bytes. Work takes it when it is armed, so that work which waits for its response is bounded as well. */
export class Capacity {
  private items = 0;
  private bytes = 0;
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

  /** Takes one item in; false when it is full. One item alone fits in whatever its size. */
  take(bytes = 0): boolean {
    if (this.items >= this.maxItems) return false;
    if (this.items > 0 && this.bytes + bytes > this.maxBytes) return false;
    this.fill(bytes);
    return true;
  }

  /** Takes one item in by the overflow policy. @throws PERF_ERR_DEFER_FULL with `'reject'` */
  takeFor(name: string, dropOldest: () => boolean, bytes = 0): boolean {
    if (this.take(bytes)) return true;
    if (this.overflow === 'reject') throw this.deferFullError(name);
    // An item larger than the whole capacity does not fit even when all others are dropped.
    if (this.overflow === 'drop-new' || bytes > this.maxBytes) return false;
    while (dropOldest()) if (this.take(bytes)) return true;
    return false;
  }

  /** Takes in what may not be refused. */
  fill(bytes: number, items = 1): void {
    this.items += items;
    this.bytes += bytes;
  }

  release(bytes = 0, items = 1): void {
    this.items -= items;
    this.bytes -= bytes;
    this.onReleased();
  }

  /** Why new work is dropped or refused. */
  get whyFull(): string {
    return this.items >= this.maxItems
      ? `${this.maxItems} were waiting already (defer.maxPending)`
      : `what waits holds nearly ${this.maxBytes} bytes already (defer.maxPendingBytes)`;
  }

  deferFullError(name: string): PerfError {
    return new PerfError(
      'PERF_ERR_DEFER_FULL',
      `no room for deferred work "${name}": ${this.whyFull}. ` +
        'Answer 503 and let the client come back, raise that bound, or choose another `defer.overflow`.',
    );
  }
}
