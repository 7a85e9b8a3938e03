import { feature, number, optional, value } from '../core/option.js';
import type { UpstreamKind } from '../core/record.js';

/** The description of a call to an upstream. */
export interface UpstreamCall {
  kind: UpstreamKind;
  /** With the port, unless it is the default of http or https. */
  host: string;
  /** `'GET'`, the Redis command, `'query'`. */
  method: string;
  /** Path of an HTTP call, with its query string; else empty. */
  path: string;
}

/** Which servers a request waits for. */
export interface UpstreamOptions {
  /**
   * Names the target of a call. It becomes a label: return few different texts, and nothing secret.
   * @default 'http api.github.com', 'redis cache:6379', 'mysql db:3306/shop'
   */
  target?: (call: UpstreamCall) => string;
  /**
   * Targets with a row of their own; calls to others are of `other`.
   * @default 64
   */
  maxTargets?: number;
  /**
   * Calls of one request that are timed; further ones are counted.
   * @default 256
   */
  maxTimedCalls?: number;
}

const target = value<NonNullable<UpstreamOptions['target']>>(
  'a function that returns a text',
  (given) => typeof given === 'function',
);

export const upstreamOption = feature({
  target: optional(target),
  maxTargets: number({ default: 64, unit: 'a number of targets', integer: true }),
  maxTimedCalls: number({ default: 256, unit: 'a number of calls', integer: true }),
});
