import { number, object, optional, optionError, value, type Option, type Resolved } from '../core/option.js';
import { timeout } from '../core/shared-options.js';
import type { IsFailure } from './failure.js';
import { breakerOption, type BreakerOptions } from './limits.options.js';
import { RedisUpstream } from './redis/redis-upstream.js';

/** The limits of the calls to one upstream. */
export interface ResilientUpstreamOptions {
  /** For a call with all its retries, milliseconds. Required. */
  deadlineMs: number;
  /**
   * Retries of an `idempotent` call, within a budget of 20 % of all calls.
   * @default 2
   */
  retries?: number;
  /**
   * Calls under way; further ones are refused with `PERF_ERR_BUSY` (503).
   * @default 1000
   */
  maxInFlight?: number;
  /**
   * `false`: calls are never refused because others have failed.
   * @default true
   */
  breaker?: boolean | BreakerOptions;
  /**
   * Decides which results and errors are failures.
   * @default everything that throws, except an abort by the application; a result with a `status` of 500 or more, or 429
   */
  isFailure?: IsFailure;
}

/** The options of `resilience()`. */
export interface ResilienceOptions {
  /** By the name in `@Upstream(name)`: letters, digits, `_`, `.` and `-`. */
  upstreams: Readonly<Record<string, ResilientUpstreamOptions | RedisUpstream>>;
  /**
   * From the start of a request, milliseconds: no call that it makes lasts longer, whatever its own deadline. A call that
   * ends because the request has no time left does not count against the upstream.
   * @default none
   */
  requestDeadlineMs?: number;
}

const isFailure = value<IsFailure>('a function', (given) => typeof given === 'function');

const upstreamOption = object({
  deadlineMs: timeout(),
  retries: number({ default: 2, unit: 'a number of retries', integer: true, min: 0, max: 10 }),
  maxInFlight: number({ default: 1_000, unit: 'a number of calls', integer: true, min: 1 }),
  breaker: breakerOption,
  isFailure: optional(isFailure),
});
export type ResolvedUpstream = Resolved<typeof upstreamOption>;

const NAME = /^[\w.-]{1,64}$/;

const upstreamsOption: Option<ReadonlyMap<string, ResolvedUpstream | RedisUpstream>> = {
  expected: 'an object with an entry for each upstream',
  read(given, path) {
    const isObject = typeof given === 'object' && given !== null && !Array.isArray(given);
    if (!isObject || Object.keys(given).length === 0) throw optionError(path, this.expected, given);
    const upstreams = new Map<string, ResolvedUpstream | RedisUpstream>();
    for (const [name, options] of Object.entries(given)) {
      if (!NAME.test(name)) throw optionError(path, 'named with letters, digits, `_`, `.` and `-`', name);
      const at = `${path}.${name}`;
      if (options === undefined) throw optionError(at, upstreamOption.expected, options);
      upstreams.set(name, options instanceof RedisUpstream ? options : upstreamOption.read(options, at));
    }
    return upstreams;
  },
};

export const resilienceOption = object({
  upstreams: upstreamsOption,
  requestDeadlineMs: optional(timeout()),
});
export type ResolvedResilience = Resolved<typeof resilienceOption>;
