import { Inject, Injectable } from '@nestjs/common';
import type { SizeNote } from './core/record.js';
import type { PerfSnapshot } from './core/snapshot.js';
import type { PerfHealth } from './perf.health.js';
import { PerfRuntime } from './perf.runtime.js';

/** What is known now, and a way to say how much data a request works on. */
@Injectable()
export class PerfService {
  constructor(@Inject(PerfRuntime) private readonly runtime: PerfRuntime) {}

  /** Statistics of all routes and features. Cheap enough for a health page, not for a request's path. */
  snapshot(): PerfSnapshot {
    return this.runtime.snapshot();
  }

  /** Whether loop, CPU, memory and deferred work have room left, for a health check. As cheap as {@link snapshot}. */
  health(): PerfHealth {
    return this.runtime.health();
  }

  /**
   * Puts the size of the data that the current request works on beside its latency and its blocks. Numbers add up over
   * several calls. Outside a request, or with the context store off, it says so once and does nothing.
   */
  note(size: SizeNote): void {
    this.runtime.note(size);
  }
}
