import { guardExtension } from '../guard/guard.feature.js';
import type { GuardOptions } from '../guard/guard.options.js';
import type { PerfExtension } from '../request/extension.js';
import { cockatielBreakers } from './guard/cockatiel.js';

export { GuardError, type GuardErrorCode } from '../guard/guard.error.js';
export type { BreakerOptions } from '../guard/gate.options.js';
export type { GuardOptions, UpstreamGuardOptions } from '../guard/guard.options.js';
export type { GuardedCall, GuardedCallOptions, GuardedUpstream } from '../guard/guarded-upstream.js';
export { guardRedis } from '../guard/redis/redis-upstream.js';
export type { RedisClient, RedisGuardOptions, RedisUpstream } from '../guard/redis/redis-upstream.js';
export { Upstream, upstreamToken } from '../guard/upstream.decorator.js';
export type { IsFailure } from '../guard/outcome.js';
export type { UpstreamGuardStats } from '../core/snapshot.js';

/**
 * Guards calls to upstreams: deadlines that know when our own loop was blocked, retries within a budget, a breaker, a bound on the
 * calls under way. `PerfModule.forRoot({ extensions: [guard({ upstreams: { github: { deadlineMs: 2_000 } } })] })`. Needs the
 * package `cockatiel`. With `enabled: false` every call passes as it is: no deadline, no retry, no refusal; fallbacks still answer.
 * @throws PERF_ERR_OPTION
 */
export const guard = (options: GuardOptions): PerfExtension => guardExtension(options, cockatielBreakers);
