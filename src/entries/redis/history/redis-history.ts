import { randomBytes } from 'node:crypto';
import type { Cluster, Redis } from 'ioredis';
import { applicationName } from '../../../core/application-package.js';
import { object } from '../../../core/option.js';
import { keyPrefix } from '../../../core/shared-options.js';
import { within } from '../../../core/within.js';
import type { HistoryStore } from '../../../history/history-store.js';
import { connectionOption, isClient, isCluster, loadRedis, makeClient } from '../connection.js';
import { OWN_PREFIX, reconnectInMs, type RedisCacheConnection } from '../connection.js';
import { RedisBuckets } from './buckets.js';
import { RedisFleet } from './fleet.js';

export interface RedisHistoryOptions {
  /** A URL, ioredis options, or an ioredis client, also a `Cluster`, which is duplicated and never touched otherwise. */
  connection: RedisCacheConnection | Redis | Cluster;
  /**
   * Before every key. Pods with one prefix are one application: another one needs its own.
   * @default 'perf:history:<name in the application's package.json>', with `-<folder>` behind it below `apps/<folder>/` of a monorepo
   */
  prefix?: string;
}

type Connection = RedisHistoryOptions['connection'];

const shape = object({
  connection: connectionOption<Connection>({ cluster: true }),
  prefix: keyPrefix,
});

/**
 * Keeps the history of all pods in Redis, added up: its size depends on routes and time, not on pods, restarts or releases.
 * Once a minute each pod adds what it has counted; keys expire, and nothing is ever scanned.
 * @throws PERF_ERR_OPTION
 */
export function redisHistory(options: RedisHistoryOptions): HistoryStore {
  const { connection, prefix: given } = shape.read(options, 'redisHistory()');
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

async function connect(connection: Connection): Promise<Redis> {
  const client = isCluster(connection)
    ? ((connection as Cluster).duplicate([], clusterOptions(connection as Cluster)) as unknown as Redis)
    : await makeClient(connection as RedisCacheConnection, OVERRIDES, NEEDED_BY);
  // Errors are reported by whoever waits for a command.
  client.on('error', () => {});
  try {
    if (await within(CONNECT_MS, () => client.connect())) return client;
    throw new Error(`no connection within ${CONNECT_MS} ms`);
  } catch (error) {
    // Nothing of this client stays: the next minute brings another.
    client.disconnect();
    throw error;
  }
}

const NEEDED_BY = '`redisHistory()`';
const CONNECT_MS = 5_000;
const EVERY_NODE = {
  // No greetings: they would count among the application's calls to this server.
  disableClientInfo: true,
  connectTimeout: CONNECT_MS,
  commandTimeout: 5_000,
  // A connection that owes an answer for longer is half open, and made anew.
  socketTimeout: 10_000,
};
/** Without a connection, parts wait in the bounded memory of who counts them. */
const OVERRIDES = { ...EVERY_NODE, protocol: 2, enableReadyCheck: false, maxRetriesPerRequest: 1 };

/** The password and the like stay the application's. */
const clusterOptions = ({ options }: Cluster, given: object = options.redisOptions ?? {}) => ({
  ...OWN_PREFIX,
  lazyConnect: true,
  enableOfflineQueue: false,
  enableReadyCheck: true,
  clusterRetryStrategy: reconnectInMs,
  redisOptions: { ...given, ...OWN_PREFIX, ...EVERY_NODE },
});
