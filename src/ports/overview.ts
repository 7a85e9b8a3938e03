import type { PerfSnapshot } from '../core/snapshot.js';
import type { Steps } from '../core/turns.js';

/** Why the process cannot do its work, and the feature that measures it. */
export interface HealthReason {
  readonly about: 'event-loop' | 'resources' | 'defer' | 'cached-data';
  readonly text: string;
}

/** The whole application at this moment. */
export abstract class Overview {
  abstract snapshotSteps(): Steps<PerfSnapshot>;
  /** Empty when the process can do its work. */
  abstract findReasons(snapshot: PerfSnapshot): readonly HealthReason[];
}
