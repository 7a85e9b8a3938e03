import { attach } from './attachment.js';

/** Who measures calls that no client tells of. */
export interface UpstreamCalls {
  timed<T>(target: string, work: () => T): T;
}

/** An application's; there is none with `upstream: false`. */
export const UPSTREAM_CALLS = attach<UpstreamCalls>('application');
