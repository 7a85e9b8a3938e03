import type { RequestState } from '../request/request-state.js';

/** Delays request records while an event-loop block that they overlap is being classified. Not provided with `eventLoop: false`. */
export abstract class RecordHold {
  /** False: nothing to wait for. True: `release` is called with the state when its figures are final (within 200 ms). */
  abstract hold(state: RequestState, release: (state: RequestState) => void): boolean;
}
