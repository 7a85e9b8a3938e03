import { attach } from './attachment.js';

/** Who measures calls that no channel tells of. */
export interface UpstreamCalls {
  timed<T>(target: string, work: () => T): T;
  /** @throws PERF_ERR_WATCH, PERF_ERR_OPTION */
  watch(client: object, options?: { target?: string }): void;
}

/** An application's; there is none with `upstream: false`. */
export const UPSTREAM_CALLS = attach<UpstreamCalls>('application');
