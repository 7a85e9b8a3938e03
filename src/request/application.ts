import type { MonotonicClock } from '../core/clock.js';
import type { Recorder } from '../core/recorder.js';
import type { OncePerCause, Reporter } from '../core/reporter.js';
import type { RequestUnits } from './request-unit.js';
import type { Routes } from './routes.js';
import type { RequestTracker } from './tracker.js';

/** Everything that the features of one application share. Each gets it injected. */
export abstract class PerfApplication {
  abstract readonly requests: RequestTracker;
  abstract readonly routes: Routes;
  abstract readonly recorder: Recorder;
  abstract readonly report: OncePerCause;
  abstract readonly logger: Reporter;
  abstract readonly nowMs: MonotonicClock;
  abstract readonly units: RequestUnits;
  /** False with `enabled: false`: only deferred, cached and offloaded work goes on. */
  abstract readonly enabled: boolean;
  abstract readonly release: string | null;
  /** Bytes that one cache may use: its own limit, or less where the option `memory` bounds all caches together. */
  abstract cacheBytes(this: void, ownBytes: number): number;
}
