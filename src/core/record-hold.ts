import { attach } from './attachment.js';
import type { RequestState } from './request-state.js';

/** Who may know that a request's record is not complete yet: a block that it overlaps is still being judged. */
export interface RecordHold {
  /** False: nothing to wait for. True: `release` is called with the state when its figures are final (within 200 ms). */
  hold(state: RequestState, release: (state: RequestState) => void): boolean;
}

/** An application's; there is none while nobody looks for blocks. */
export const RECORD_HOLD = attach<RecordHold>('application');
