import { object, optionError, type Resolved } from '../../core/option.js';
import { timeout } from '../../core/shared-options.js';
import { breakerOption, type BreakerOptions } from '../limits.options.js';

/** An ioredis client, `Redis` or `Cluster`: structural, so that each version fits. A client of node-redis has no `pipeline`. */
export interface RedisClient {
  pipeline(...given: never[]): unknown;
  sendCommand(...given: never[]): unknown;
}

/** The limits of a Redis client's commands. */
export interface ResilientRedisOptions {
  /** For a command, milliseconds, its wait in ioredis' queues included. Required. */
  deadlineMs: number;
  /**
   * `false`: commands are never refused because others have failed.
   * @default true
   */
  breaker?: boolean | BreakerOptions;
}

const redisOption = object({
  deadlineMs: timeout(),
  breaker: breakerOption,
});
export type ResolvedRedis = Resolved<typeof redisOption>;

/** A Redis client and its limits. */
export class RedisUpstream {
  constructor(
    readonly client: RedisClient,
    readonly options: ResolvedRedis,
  ) {}
}

/**
 * A Redis client as an upstream of `resilience()`: every command that the application sends through this client has a deadline, also
 * while it waits in ioredis' queues. The client stays the application's: it is never closed here.
 * @throws PERF_ERR_OPTION
 */
export function resilientRedis(client: RedisClient, options: ResilientRedisOptions): RedisUpstream {
  const candidate = client as Partial<RedisClient> | null | undefined;
  if (typeof candidate?.sendCommand !== 'function' || typeof candidate.pipeline !== 'function') {
    throw optionError('resilientRedis(client)', 'a client of ioredis, a `Redis` or a `Cluster`', client);
  }
  return new RedisUpstream(client, redisOption.read(options, 'resilientRedis'));
}
