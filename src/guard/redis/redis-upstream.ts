import { object, optional, optionalNumber, optionError, value, type Resolved } from '../../core/option.js';
import { breakerOption, deadlineOption, maxInFlight, type BreakerOptions } from '../gate.options.js';

/** What is asked of an ioredis client, `Redis` or `Cluster`: structural, so that each version of it fits. One of node-redis has no `pipeline`. */
export interface RedisClient {
  pipeline(...given: never[]): unknown;
  sendCommand(...given: never[]): unknown;
}

/** How a Redis client is guarded. */
export interface RedisGuardOptions {
  /** For a command, milliseconds, its wait in ioredis' queues included. Required. */
  deadlineMs: number;
  /**
   * Commands under way, a pipeline counts as one; further ones are refused with `PERF_ERR_BUSY` (503).
   * @default no limit: ioredis sends them on one connection
   */
  maxInFlight?: number;
  /**
   * `false`: commands are never refused because others have failed.
   * @default true
   */
  breaker?: boolean | BreakerOptions;
  /**
   * Decides which of a command's errors are failures of Redis.
   * @default all but its replies: `WRONGTYPE` and the like are answers, `LOADING`, `CLUSTERDOWN` and `MASTERDOWN` are failures
   */
  isFailure?: (error: unknown) => boolean;
}

type IsRedisFailure = NonNullable<RedisGuardOptions['isFailure']>;
const isFailure = value<IsRedisFailure>('a function', (given) => typeof given === 'function');

const redisOption = object({
  deadlineMs: deadlineOption,
  maxInFlight: optionalNumber(maxInFlight),
  breaker: breakerOption,
  isFailure: optional(isFailure),
});
export type ResolvedRedis = Resolved<typeof redisOption>;

/** A Redis client and how it is guarded. */
export class RedisUpstream {
  constructor(
    readonly client: RedisClient,
    readonly options: ResolvedRedis,
  ) {}
}

/**
 * A Redis client as an upstream of `guard()`: every command that the application sends through this client has a deadline, also
 * while it waits in ioredis' queues. The client is the application's own: it is not closed with the guard.
 * @throws PERF_ERR_OPTION
 */
export function guardRedis(client: RedisClient, options: RedisGuardOptions): RedisUpstream {
  const candidate = client as Partial<RedisClient> | null | undefined;
  if (typeof candidate?.sendCommand !== 'function' || typeof candidate.pipeline !== 'function') {
    throw optionError('guardRedis(client)', 'a client of ioredis, a `Redis` or a `Cluster`', client);
  }
  return new RedisUpstream(client, redisOption.read(options, 'guardRedis'));
}
