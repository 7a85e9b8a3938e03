import type { Redis, RedisOptions } from 'ioredis';
import type { TimeRange } from '../../ports/history.js';
import { applicationName } from '../../core/application-package.js';
import { object, optional, string, value } from '../../core/option.js';
import { asOwnCalls } from '../../core/own-calls.js';
import type { HistoryStore, HistoryStoreHost, OpenHistoryStore } from '../../history/history-store.js';
import { decodeRow, encodeRow, type HistoryRow } from '../../history/rows/row.js';
import { bucketOf, ruleOf, type Tier } from '../../history/rows/tiers.js';
import { clientOf, isClient, isConnection, loadRedis } from './connection.js';

export interface RedisHistoryOptions {
  /** Options of `ioredis`, or a client of it: a connection of its own is made from either. Cluster is not supported. */
  connection: RedisOptions | Redis;
  /**
   * Before every key. Pods with one prefix are one application: another one needs its own.
   * @default 'perf:history:<name in the application's package.json>', with `-<folder>` behind it below `apps/<folder>/` of a monorepo
   */
  prefix?: string;
}

const shape = object({
  connection: value<RedisOptions | Redis>('options of ioredis, or a client of it, and no Cluster', isConnection),
  prefix: optional(string({ what: 'a text that is not empty', test: (prefix) => prefix !== '' })),
});

/**
 * Keeps the history of all pods in Redis: one hash a bucket, in which every process has a field of its own. One pipeline a minute
 * writes, keys expire, and nothing is ever scanned.
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
      const client = await clientOf(connection, OVERRIDES, NEEDED_BY);
      // What goes wrong is reported by whoever waits for a command.
      client.on('error', () => {});
      const giveUp = (): void => client.disconnect();
      host.signal.addEventListener('abort', giveUp, { once: true });
      try {
        await client.connect();
      } catch (error) {
        // Nothing of this client stays: the next minute brings another.
        host.signal.removeEventListener('abort', giveUp);
        giveUp();
        throw error;
      }
      return new RedisRows(client, prefix, host);
    },
  };
}

const NEEDED_BY = '`redisHistory()`';
/** Without a connection rows wait in the bounded memory of who writes them. */
const OVERRIDES = {
  // No greetings: they would stand among the application's calls to this server.
  protocol: 2,
  disableClientInfo: true,
  enableReadyCheck: false,
  maxRetriesPerRequest: 1,
  connectTimeout: 5_000,
  commandTimeout: 5_000,
  // A connection that owes an answer for longer is half open, and made anew.
  socketTimeout: 10_000,
};

/** Keys that are asked for in one round trip. */
const KEYS_AT_ONCE = 64;

class RedisRows implements OpenHistoryStore {
  constructor(
    private readonly client: Redis,
    private readonly prefix: string,
    private readonly host: HistoryStoreHost,
  ) {}

  async write(finished: readonly HistoryRow[], running: readonly HistoryRow[]): Promise<void> {
    const pipeline = this.client.pipeline();
    for (const row of [...finished, ...running]) {
      const key = this.keyOf(row.tier, row.at);
      pipeline.hset(key, row.instance, encodeRow(row));
      pipeline.expire(key, Math.ceil((this.host.keptMs(row.tier) + ruleOf(row.tier).stepMs) / 1_000));
    }
    refuseErrors(await asOwnCalls(() => pipeline.exec()));
  }

  async *read(tier: Tier, { from, to }: TimeRange): AsyncGenerator<HistoryRow> {
    const { stepMs } = ruleOf(tier);
    const oldest = Date.now() - this.host.keptMs(tier) - stepMs;
    // Other pods' clocks may be ahead; nobody's is by an hour.
    const newest = Math.min(to, Date.now() + 3_600_000);
    let first = bucketOf(Math.max(from, oldest), stepMs);
    if (first < from) first += stepMs;
    const keys: string[] = [];
    for (let at = first; at < newest; at += stepMs) keys.push(this.keyOf(tier, at));
    while (keys.length > 0) {
      const pipeline = this.client.pipeline();
      for (const key of keys.splice(0, KEYS_AT_ONCE)) pipeline.hgetallBuffer(key);
      for (const fields of refuseErrors(await asOwnCalls(() => pipeline.exec()))) {
        for (const bytes of Object.values(fields as Record<string, Buffer>)) {
          const row = decodeRow(bytes);
          if (row !== null) yield row;
        }
      }
    }
  }

  async close(): Promise<void> {
    this.client.disconnect();
  }

  private keyOf(tier: Tier, at: number): string {
    return `${this.prefix}:${tier}:${at}`;
  }
}

/** The first error of a pipeline, thrown; else its answers. */
function refuseErrors(results: [Error | null, unknown][] | null): unknown[] {
  return (results ?? []).map(([error, answer]) => {
    if (error !== null) throw error;
    return answer;
  });
}
