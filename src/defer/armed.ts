import type { PerfError } from '../core/perf.error.js';
import type { Capacity } from './capacity.js';
import type { DeferWhen } from './deferred-work.js';

/** Work that was armed during a request and has its capacity; it is either committed or discarded, once. */
export interface Armed {
  /** Left out where it only stands in for another. */
  readonly name?: string;
  /** Null is the default: success while the request is open, anything once it has been decided. */
  readonly when: DeferWhen | null;
  /** Resolves, and never rejects, when it is on disk, or not in time: with why a route answers 503 then. The answer waits for it. */
  readonly written?: Promise<PerfError | null>;
  /** The capacity that it takes, and gives back when it is dropped for newer work; left out where it is not. */
  readonly holds?: Capacity;
  drop?(why: string): void;
  commit(status: number | null): void;
  discard(): void;
}
