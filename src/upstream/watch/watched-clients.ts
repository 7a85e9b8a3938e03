import { object, optional, value } from '../../core/option.js';
import { PerfError } from '../../core/perf.error.js';
import type { Target } from '../target.js';
import type { Upstream } from '../upstream.js';
import { watchKnex } from './knex.js';
import { watchMongo } from './mongodb.js';
import { watchPgClient, watchPgPool } from './pg.js';
import { watchPrisma } from './prisma.js';
import { watchTypeOrm } from './typeorm.js';
import { endOf, type Hearer, type Watch, type WatchedCall } from './watched-call.js';

const CLIENTS: readonly Watch[] = [watchTypeOrm, watchKnex, watchMongo, watchPrisma, watchPgPool, watchPgClient];

const watchOptions = object({
  target: optional(value<string>('a text that is not empty', (given) => typeof given === 'string' && given !== '')),
});

/** The clients that one application watches, until it closes. */
export class WatchedClients {
  // A client that is forgotten takes with it what stops hearing it.
  private readonly stops = new WeakMap<object, () => void>();
  private readonly heard = new Set<WeakRef<object>>();
  private closed = false;

  constructor(private readonly upstream: Upstream) {}

  /** @throws PERF_ERR_WATCH, PERF_ERR_OPTION */
  watch(client: object, options: { target?: string } = {}): void {
    const { target } = watchOptions.read(options, 'perf.watch options');
    const key = isObject(client) ? heardAs(client) : client;
    if (this.closed || this.stops.has(key)) return;
    const hearer = hearerOf(this.upstream, target);
    for (const watch of CLIENTS) {
      const stop = isObject(client) ? watch(client, hearer) : null;
      if (stop === null) continue;
      this.stops.set(key, stop);
      for (const one of this.heard) if (one.deref() === undefined) this.heard.delete(one);
      this.heard.add(new WeakRef(key));
      return;
    }
    throw new PerfError(
      'PERF_ERR_WATCH',
      'perf.watch() was given a client that it does not know: it hears a Pool or Client of pg, a MongoClient, knex, a PrismaClient and a TypeORM DataSource. ' +
        '`fetch`, undici, node:http, and ioredis, redis and mysql2 of new versions (docs/upstream.md) are heard without it. Put `perf.timed()` around calls of others.',
    );
  }

  close(): void {
    this.closed = true;
    for (const one of this.heard) {
      const client = one.deref();
      if (client !== undefined) this.stops.get(client)?.();
    }
    this.heard.clear();
  }
}

const isObject = (given: unknown): boolean =>
  (typeof given === 'object' && given !== null) || typeof given === 'function';

/** Of a DataSource its list of subscribers: `initialize()` makes a new one. */
const heardAs = (client: { subscribers?: unknown }): object =>
  Array.isArray(client.subscribers) ? client.subscribers : client;

function hearerOf(upstream: Upstream, named: string | null): Hearer {
  const targetOf = ({ kind, client, host, method }: WatchedCall): Target =>
    named === null
      ? upstream.targets.of({ kind, client, host, method, path: '' })
      : upstream.targets.named(named, kind);
  return {
    begin(told, { known } = { known: true }) {
      const caller = known ? upstream.caller() : null;
      const { client, what, driven = false } = told;
      if (caller === 'foreign' || (!driven && upstream.driven.take(client, what, caller))) return () => {};
      const end = endOf(upstream, upstream.beginFor(caller, targetOf(told), what));
      if (!driven) return end;
      const endStatement = upstream.driven.begin(client, what, caller);
      return (failed) => {
        endStatement();
        end(failed);
      };
    },
    ended: (told, durationMs) => upstream.endedUnplaced(targetOf(told), durationMs),
  };
}
