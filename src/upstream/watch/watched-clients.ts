import { object, optional, value } from '../../core/option.js';
import { PerfError } from '../../core/perf.error.js';
import type { Channels } from '../channels.js';
import type { Upstream } from '../upstream.js';
import { watchKnex } from './knex.js';
import { watchMongo } from './mongodb.js';
import { findCore, MySqlConnections } from './mysql.js';
import { watchPgClient, watchPgPool } from './pg.js';
import { watchPrisma } from './prisma.js';
import { driverPools } from './typeorm.js';
import { hasMethods, type FindTarget, type Watch } from './watch.js';
import { Stops } from './stops.js';

const CLIENTS: readonly Watch[] = [watchKnex, watchMongo, watchPrisma, watchPgPool, watchPgClient];

const watchOptions = object({
  target: optional(value<string>('a text that is not empty', (given) => typeof given === 'string' && given !== '')),
});

/** The clients that one application watches, until it closes. */
export class WatchedClients {
  private readonly stops = new Stops();
  private readonly mysql: MySqlConnections;
  private closed = false;

  constructor(private readonly upstream: Upstream) {
    this.mysql = new MySqlConnections(upstream, this.findTarget(null));
  }

  subscribe(channels: Channels): void {
    this.mysql.subscribe(channels);
  }

  /** @throws PERF_ERR_WATCH, PERF_ERR_OPTION */
  watch(client: object, options: { target?: string } = {}): void {
    const { target } = watchOptions.read(options, 'perf.watch options');
    const pools = isObject(client) ? driverPools(client) : null;
    for (const one of pools ?? [client]) this.watchOne(isObject(one) ? findCore(one) : one, target);
  }

  private watchOne(client: object, target: string | null): void {
    if (this.closed || this.stops.has(client)) return;
    const findTarget = this.findTarget(target);
    for (const watch of isObject(client) ? [...CLIENTS, this.mysql.watch] : []) {
      const stop = watch(client, this.upstream, findTarget);
      if (stop !== null) return this.stops.set(client, stop);
    }
    throw new PerfError('PERF_ERR_WATCH', unknownClient(client));
  }

  private findTarget(named: string | null): FindTarget {
    const { targets } = this.upstream;
    return (kind, client, host, method = 'query') =>
      named === null ? targets.find(kind, client, host, method) : targets.named(named, kind);
  }

  close(): void {
    this.closed = true;
    this.stops.close();
    this.mysql.close();
  }
}

const isObject = (given: unknown): given is object =>
  (typeof given === 'object' && given !== null) || typeof given === 'function';

function unknownClient(client: unknown): string {
  if (isObject(client) && hasMethods(client, 'sendCommand', 'connect', 'on'))
    return 'perf.watch() was given a Redis client: ioredis from 5.11 and redis from 5.12 need no perf.watch(). Put `perf.timed()` around calls of older versions.';
  return (
    'perf.watch() was given a client that it does not know. It knows a Pool or Client of pg, a Pool or Connection of mysql2, a MongoClient, knex, ' +
    'a PrismaClient and a TypeORM DataSource of these drivers; of MikroORM its `getConnection().getNativeClient()`. `fetch`, undici, node:http, ioredis and redis need no perf.watch(). ' +
    'Put `perf.timed()` around calls of other clients.'
  );
}
