import { attach } from './attachment.js';
import type { RequestTime, UpstreamUse } from './record.js';

/** Where the time of a request went, final once it has ended. */
export interface TimeSplit {
  readonly time: RequestTime;
  readonly upstream: readonly UpstreamUse[];
}

/** A request's, set when it has ended; null where nobody measures it. */
export const TIME_SPLIT = attach<TimeSplit>('request');
