import { Inject, Injectable } from '@nestjs/common';
import type { SizeNote } from './core/record.js';
import type { PerfSnapshot } from './core/snapshot.js';
import { UPSTREAM_CALLS } from './core/upstream-calls.js';
import { PerfRuntime } from './perf.runtime.js';

/** What is known now, and a way to say how much data a request works on. */
@Injectable()
export class PerfService {
  constructor(@Inject(PerfRuntime) private readonly runtime: PerfRuntime) {}

  /** Statistics of all routes and features. Cheap enough for a health page, not for a request's path. */
  snapshot(): PerfSnapshot {
    return this.runtime.snapshot();
  }

  /**
   * Runs `work` as a call to an upstream that no client tells of, until what it returns has settled. It is timed for its target
   * and for the request that makes it. Passes on what it returns or throws.
   * @example await perf.timed('s3 uploads', () => s3.send(command))
   */
  timed<T>(target: string, work: () => T): T {
    const calls = UPSTREAM_CALLS.get(this.runtime.requests);
    return calls === null ? work() : calls.timed(target, work);
  }

  /**
   * Puts the size of the data that the current request works on beside its latency and its blocks. Numbers add up over
   * several calls. Outside a request, or with the context store off, it says so once and does nothing.
   */
  note(size: SizeNote): void {
    this.runtime.note(size);
  }
}
