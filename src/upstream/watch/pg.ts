import { errorMonitor } from 'node:events';
import type { RequestState } from '../../core/request-state.js';
import type { Call } from '../upstream.js';
import type { Target } from '../target.js';
import { databaseOf, type Database } from './database.js';
import { ownMethod } from './own-property.js';
import type { Unwatch, WatchableClient, Watching } from './watched-client.js';

type Query = (this: unknown, ...args: unknown[]) => unknown;
type Connected = (error: unknown, client?: PgClient, release?: unknown) => void;
interface PgClient extends Database {
  query: Query;
}
interface PgPool {
  query: Query;
  connect: (this: unknown, connected?: Connected) => unknown;
  readonly options: Database & { readonly connectionString?: string };
  on(event: string, hear: (client: PgClient) => void): unknown;
  off(event: string, hear: (client: PgClient) => void): unknown;
}
interface Emitting {
  once(event: string | symbol, hear: () => void): unknown;
}

/** pg has no event for a query: a `query` of our own on that object goes before its own. */
export const pgClient: WatchableClient = {
  name: 'pg Client',
  recognizes: (client) => 'query' in client && 'escapeIdentifier' in client && 'escapeLiteral' in client,
  watch: (client: PgClient, watching) => watchClient(client, watching, targetOf(client, watching), IN_USE),
};

export const pgPool: WatchableClient = {
  name: 'pg Pool',
  recognizes: (client) => 'query' in client && 'totalCount' in client && 'waitingCount' in client,
  watch(pool: PgPool, watching) {
    const { options } = pool;
    const target = targetOf({ ...options, url: options.connectionString }, watching);
    const clients = new Map<PgClient, Checkout & { unwatch: Unwatch }>();
    let inQuery = false;

    const acquired = (client: PgClient): void => {
      const known = clients.get(client);
      if (known !== undefined) {
        Object.assign(known, IN_USE);
        return;
      }
      const checkout = { ...IN_USE };
      const unwatch = watchClient(client, watching, target, checkout);
      clients.set(client, Object.assign(checkout, { unwatch }));
    };
    const removed = (client: PgClient): void => {
      clients.get(client)?.unwatch();
      clients.delete(client);
    };
    pool.on('acquire', acquired);
    pool.on('remove', removed);
    const undo = [
      ownMethod(pool, 'query', (query) => {
        const measured = measuredQuery(query, watching, target, IN_USE);
        return function (this: unknown, ...args) {
          inQuery = true;
          try {
            return measured.apply(this, args);
          } finally {
            inQuery = false;
          }
        };
      }),
      ownMethod(pool, 'connect', (connect) => {
        return function (this: unknown, connected) {
          if (connected === undefined) return connect.call(this);
          // Called where a client becomes free, by somebody else's query: whose client it is, is known here only.
          const counts = !inQuery;
          const state = watching.upstream.caller();
          return connect.call(this, (error, client, release) => {
            const checkout = client === undefined ? undefined : clients.get(client);
            if (checkout !== undefined) Object.assign(checkout, { counts, owner: state });
            connected(error, client, release);
          });
        };
      }),
    ];
    return () => {
      pool.off('acquire', acquired);
      pool.off('remove', removed);
      for (const { unwatch } of clients.values()) unwatch();
      clients.clear();
      for (const restore of undo) restore();
    };
  },
};

/** How a client is in use. */
interface Checkout {
  /** False for one that runs its pool's own query, which is counted there. */
  counts: boolean;
  /** Who asked for it with a callback; else whoever runs a query makes it. */
  owner: RequestState | 'foreign' | null;
}
const IN_USE: Readonly<Checkout> = { counts: true, owner: null };

function watchClient(client: PgClient, watching: Watching, target: Target, checkout: Readonly<Checkout>): Unwatch {
  return ownMethod(client, 'query', (query) => measuredQuery(query, watching, target, checkout));
}

function targetOf(database: Database, watching: Watching): Target {
  const { PGHOST, PGPORT, PGDATABASE } = process.env;
  const { host = PGHOST, port = PGPORT ?? 5432, database: name = PGDATABASE, url } = database;
  const server = databaseOf({ host, port, database: name, url });
  return watching.targetOf({ kind: 'sql', client: 'postgres', host: server, method: 'query', path: '' });
}

function measuredQuery(query: Query, watching: Watching, target: Target, checkout: Readonly<Checkout>): Query {
  return function (this: unknown, ...args: unknown[]) {
    const call = watching.active && checkout.counts ? begin(args[0], watching, target, checkout) : null;
    if (call === null) return query.apply(this, args);
    const end = (failed: boolean): void => watching.upstream.end(call, failed);
    const last = args.length - 1;
    const callback = args[last];
    if (typeof callback === 'function') {
      args[last] = (error: unknown, ...rest: unknown[]) => {
        end(error != null);
        Reflect.apply(callback, undefined, [error, ...rest]);
      };
    }
    try {
      const result = query.apply(this, args);
      if (typeof callback !== 'function') whenOver(result, end);
      return result;
    } catch (error) {
      end(true);
      throw error;
    }
  };
}

function begin(query: unknown, { upstream }: Watching, target: Target, { owner }: Readonly<Checkout>): Call | null {
  const state = owner ?? upstream.caller();
  if (state === 'foreign') return null;
  const text = typeof query === 'string' ? query : (query as { text?: unknown } | null)?.text;
  if (typeof text === 'string' && upstream.statements.take(text, state)) return null;
  return upstream.beginFor(state, target, 'query', false);
}

/** A promise, or what pg calls a submittable: a query, cursor or stream that emits events. */
function whenOver(result: unknown, end: (failed: boolean) => void): void {
  if (result instanceof Promise) {
    result.then(
      () => end(false),
      () => end(true),
    );
    return;
  }
  let over = false;
  const once = (failed: boolean) => () => {
    if (!over) end(failed);
    over = true;
  };
  const emitting = result as Partial<Emitting> | undefined;
  if (typeof emitting?.once !== 'function') return end(false);
  emitting.once('end', once(false));
  emitting.once('close', once(false));
  emitting.once(errorMonitor, once(true));
}
