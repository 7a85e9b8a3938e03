import type { PerfSnapshot } from '../core/snapshot.js';
import type { Steps } from '../core/turns.js';

/** The whole application at this moment. */
export abstract class Overview {
  abstract snapshotSteps(): Steps<PerfSnapshot>;
  /** Why the process cannot do its work, in words; empty when it can. */
  abstract reasonsOf(snapshot: PerfSnapshot): readonly string[];
}
