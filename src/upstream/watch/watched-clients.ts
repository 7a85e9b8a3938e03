import { object, optional, value } from '../../core/option.js';
import { PerfError } from '../../core/perf.error.js';
import type { Channels } from '../channels.js';
import type { Target } from '../target.js';
import { Pools } from '../pool.js';
import type { Upstream } from '../upstream.js';
import { watchKnex } from './knex.js';
import { watchMongo } from './mongodb.js';
import { coreOf, MySqlConnections } from './mysql.js';
import { watchPgClient, watchPgPool } from './pg.js';
import { watchPrisma } from './prisma.js';
import { driverPools } from './typeorm.js';
import { endOf, hasMethods, type Hearer, type Watch, type WatchedCall, type WatchedServer } from './watched-call.js';

const CLIENTS: readonly Watch[] = [watchKnex, watchMongo, watchPrisma, watchPgPool, watchPgClient];

const watchOptions = object({
  target: optional(value<string>('a text that is not empty', (given) => typeof given === 'string' && given !== '')),
});

/** The clients that one application watches, until it closes. */
export class WatchedClients {
  // A client that the application forgets takes with it what unsubscribes from it.
  private readonly stops = new WeakMap<object, () => void>();
  private readonly watched = new Set<WeakRef<object>>();
  private readonly mysql: MySqlConnections;
  private closed = false;

  constructor(private readonly upstream: Upstream) {
    this.mysql = new MySqlConnections(hearerOf(upstream, null));
  }

  subscribe(channels: Channels): void {
    this.mysql.subscribe(channels);
  }

  /** @throws PERF_ERR_WATCH, PERF_ERR_OPTION */
  watch(client: object, options: { target?: string } = {}): void {
    const { target } = watchOptions.read(options, 'perf.watch options');
    const pools = isObject(client) ? driverPools(client) : null;
    for (const one of pools ?? [client]) this.watchOne(isObject(one) ? coreOf(one) : one, target);
  }

  private watchOne(client: object, target: string | null): void {
    if (this.closed || this.stops.has(client)) return;
    const hearer = hearerOf(this.upstream, target);
    for (const watch of isObject(client) ? [...CLIENTS, this.mysql.watch] : []) {
      const stop = watch(client, hearer);
      if (stop === null) continue;
      this.stops.set(client, stop);
      for (const one of this.watched) if (one.deref() === undefined) this.watched.delete(one);
      this.watched.add(new WeakRef(client));
      return;
    }
    throw new PerfError('PERF_ERR_WATCH', unknownClient(client));
  }

  close(): void {
    this.closed = true;
    for (const one of this.watched) {
      const client = one.deref();
      if (client !== undefined) this.stops.get(client)?.();
    }
    this.watched.clear();
    this.mysql.close();
  }
}

const isObject = (given: unknown): given is object =>
  (typeof given === 'object' && given !== null) || typeof given === 'function';

function unknownClient(client: unknown): string {
  if (isObject(client) && hasMethods(client, 'sendCommand', 'connect', 'on'))
    return 'perf.watch() was given a Redis client: ioredis from 5.11 and redis from 5.10 need no perf.watch(). Put `perf.timed()` around calls of older versions.';
  return (
    'perf.watch() was given a client that it does not know. It knows a Pool or Client of pg, a Pool or Connection of mysql2, a MongoClient, knex, ' +
    'a PrismaClient and a TypeORM DataSource of these drivers. `fetch`, undici, node:http, ioredis and redis need no perf.watch(). ' +
    'Put `perf.timed()` around calls of other clients.'
  );
}

function hearerOf(upstream: Upstream, named: string | null): Hearer {
  const targetOf = ({ kind, client, host }: WatchedServer, method: string): Target =>
    named === null
      ? upstream.targets.find({ kind, client, host, method, path: '' })
      : upstream.targets.named(named, kind);
  return {
    begin(call: WatchedCall) {
      const caller = upstream.caller();
      if (caller === 'foreign') return () => {};
      return endOf(upstream, upstream.beginFor(caller, targetOf(call, call.method), call.what));
    },
    ended: (call, durationMs) => upstream.endedUnplaced(targetOf(call, call.method), durationMs),
    pool(pool, server, readSize) {
      const target = targetOf(server, 'connect');
      (target.pools ??= new Pools()).add(pool, readSize);
      return () => upstream.beginWait(target);
    },
  };
}
