import type { PerfExtension } from '../request/extension.js';
import { resilienceExtension } from '../resilience/resilience.feature.js';
import type { ResilienceOptions } from '../resilience/resilience.options.js';
import { cockatielBreaker } from './resilience/cockatiel-breaker.js';

export type { ResilientUpstreamStats } from '../core/snapshot.js';
export type { IsFailure } from '../resilience/failure.js';
export { resilientRedis } from '../resilience/redis/redis-upstream.js';
export type { RedisClient, RedisUpstream, ResilientRedisOptions } from '../resilience/redis/redis-upstream.js';
export { ResilienceError, type ResilienceErrorCode } from '../resilience/resilience.error.js';
export type { BreakerOptions } from '../resilience/limits.options.js';
export type { ResilienceOptions, ResilientUpstreamOptions } from '../resilience/resilience.options.js';
export type { ResilientCall, ResilientCallOptions, ResilientUpstream } from '../resilience/resilient-upstream.js';
export { Upstream, upstreamToken } from '../resilience/upstream.decorator.js';

/**
 * Limits calls to upstreams: deadlines that know when our own loop was blocked, retries within a budget, a circuit breaker, a bound
 * on the calls in flight. `PerfModule.forRoot({ extensions: [resilience({ upstreams: { github: { deadlineMs: 2_000 } } })] })`.
 * Needs the package `cockatiel`. With `enabled: false` every call passes as it is: no deadline, no retry, no refusal; fallbacks
 * still answer.
 * @throws PERF_ERR_OPTION
 */
export const resilience = (options: ResilienceOptions): PerfExtension => resilienceExtension(options, cockatielBreaker);
