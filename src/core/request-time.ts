import { attach } from './attachment.js';
import type { RequestTime, UpstreamUse } from './record.js';
import type { RequestState } from './request-state.js';

/** Where the time of a request went, final once it has ended. */
export interface TimeSplit {
  readonly time: RequestTime;
  readonly upstream: readonly UpstreamUse[];
}

/** What is known of a request that has not ended. An application's; there is none with `upstream: false`. */
export const TIME_SO_FAR = attach<(state: RequestState) => RequestTime | null>('application');

/** A request's, set when it has ended; null where nobody measures it. */
export const TIME_SPLIT = attach<TimeSplit>('request');
