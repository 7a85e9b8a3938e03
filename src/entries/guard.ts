export { guard } from './guard/guard.js';
export { GuardError, type GuardErrorCode } from '../guard/guard.error.js';
export type { BreakerOptions } from '../guard/gate.options.js';
export type { GuardOptions, UpstreamGuardOptions } from '../guard/guard.options.js';
export type { GuardedCall, GuardedCallOptions, GuardedUpstream } from '../guard/guarded-upstream.js';
export {
  guardRedis,
  type RedisClient,
  type RedisGuardOptions,
  type RedisUpstream,
} from '../guard/redis/redis-upstream.js';
export { Upstream, upstreamToken } from '../guard/upstream.decorator.js';
export type { IsFailure } from '../guard/outcome.js';
export type { UpstreamGuardStats } from '../core/snapshot.js';
