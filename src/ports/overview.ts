import type { PerfSnapshot } from '../core/snapshot.js';
import type { Steps } from '../core/turns.js';

/** The whole application at this moment. */
export abstract class Overview {
  abstract snapshotSteps(): Steps<PerfSnapshot>;
  /** `reasons`: why the process cannot do its work, in words; empty when it can. */
  abstract health(snapshot: PerfSnapshot): { readonly reasons: readonly string[] };
}
