import type { RequestTime } from '../core/record.js';
import type { RequestState } from '../request/request-state.js';

/** Splits the time of requests that have not ended. Not provided with `upstream: false`. */
export abstract class TimeSoFar {
  abstract splitSoFar(state: RequestState): RequestTime | null;
}
