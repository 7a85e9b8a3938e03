import type { PerfSnapshot } from '../core/snapshot.js';
import type { Steps } from '../core/turns.js';

/** Why the process cannot do its work, and the feature that measures it. */
export interface HealthReason {
  readonly about: 'event-loop' | 'resources' | 'defer' | 'cached-data';
  readonly text: string;
}

/** Whether the process can do its work, for a health check. */
export interface PerfHealth {
  readonly status: 'ok' | 'degraded';
  /** The reasons in words; empty when all is well. A feature that is off has none. */
  readonly reasons: readonly string[];
}

/** Whether the process shall get requests, for a readiness probe. */
export interface PerfReadiness {
  readonly ready: boolean;
  /** Why not, in words; empty when it is ready. */
  readonly reasons: readonly string[];
}

/** The whole application at this moment. */
export abstract class Overview {
  abstract snapshotSteps(): Steps<PerfSnapshot>;
  /** Empty when the process can do its work. */
  abstract findReasons(snapshot: PerfSnapshot): readonly HealthReason[];
}
