import { attach } from './attachment.js';

/** Who measures calls that no channel tells of. */
export interface UpstreamCalls {
  /** `alike`: many of them in a request could mostly be one. @default true */
  timed<T>(target: string, work: () => T, alike?: boolean): T;
  /** @throws PERF_ERR_WATCH, PERF_ERR_OPTION */
  watch(client: object, options?: { target?: string }): void;
}

/** An application's; there is none with `upstream: false`. */
export const UPSTREAM_CALLS = attach<UpstreamCalls>('application');
