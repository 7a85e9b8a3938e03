import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import { applicationName } from '../../../core/application-package.js';
import { object } from '../../../core/option.js';
import { keyPrefix } from '../../../core/shared-options.js';
import { within } from '../../../core/within.js';
import type { HistoryStore } from '../../../history/history-store.js';
import { connectionOption, isClient, loadRedis, makeClient, type RedisCacheConnection } from '../connection.js';
import { RedisBuckets } from './buckets.js';
import { RedisFleet } from './fleet.js';

export interface RedisHistoryOptions {
  /** A URL, ioredis options, or an ioredis client, also a `Cluster`, which is duplicated and never touched otherwise. */
  connection: RedisCacheConnection;
  /**
   * Before every key. Pods with one prefix are one application: another one needs its own.
   * @default 'perf:history:<name in the application's package.json>', with `-<folder>` behind it below `apps/<folder>/` of a monorepo
   */
  prefix?: string;
}

const shape = object({
  connection: connectionOption(),
  prefix: keyPrefix,
});

/**
 * Keeps the history of all pods in Redis, added up: its size depends on routes and time, not on pods, restarts or releases.
 * Once a minute each pod adds what it has counted; keys expire, and nothing is ever scanned.
 * @throws PERF_ERR_OPTION
 */
export function redisHistory(options: RedisHistoryOptions): HistoryStore {
  const { connection, prefix: given } = shape.read(options, 'redisHistory');
  const prefix = given ?? `perf:history:${applicationName() ?? 'application'}`;
  return {
    name: 'redis',
    shared: true,
    load: async () => {
      if (!isClient(connection)) await loadRedis(NEEDED_BY);
    },
    open: async (host) => {
      const client = await connect(connection);
      const who = randomBytes(6).toString('base64url');
      const buckets = new RedisBuckets(client, prefix, host, who);
      return {
        fleet: new RedisFleet(client, prefix, who),
        write: (parts) => buckets.add(parts),
        read: (tier, range) => buckets.read(tier, range),
        close: async () => client.disconnect(),
      };
    },
  };
}

async function connect(connection: RedisCacheConnection): Promise<Redis> {
  const client = await makeClient(connection, OVERRIDES, NEEDED_BY);
  // Errors are reported by whoever waits for a command; why a connection failed is in this event alone.
  let refusal: unknown = null;
  client.on('error', (error) => (refusal = error));
  try {
    if (await within(CONNECT_MS, () => client.connect())) return client;
    throw new Error(`no connection within ${CONNECT_MS} ms`);
  } catch (error) {
    // Nothing of this client stays: the next minute brings another.
    client.disconnect();
    throw refusal ?? error;
  }
}

const NEEDED_BY = '`redisHistory()`';
const CONNECT_MS = 5_000;
/** Without a connection, parts wait in the bounded memory of who counts them. */
const OVERRIDES = {
  // No greetings: they would count among the application's calls to this server.
  disableClientInfo: true,
  protocol: 2,
  enableReadyCheck: false,
  connectTimeout: CONNECT_MS,
  commandTimeout: 5_000,
  maxRetriesPerRequest: 1,
  // A connection that owes an answer for longer is half open, and made anew.
  socketTimeout: 10_000,
};
