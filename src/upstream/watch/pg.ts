import type { EventEmitter } from 'node:events';
import { listenShared } from '../../core/shared-listener.js';
import { endByCallback, settling, surround, surroundLending } from './surround.js';
import type { Target } from '../target.js';
import type { Upstream } from '../upstream.js';
import { maskValues } from './statement.js';
import { hasMethods, serverInUrl, serverName, type Watch } from './watch.js';

/** The documented part of `pg.Client`. */
interface Client extends EventEmitter {
  readonly host?: string;
  readonly port?: number;
  readonly database?: string;
}

/** The documented part of `pg.Pool`. */
interface Pool extends EventEmitter {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
  readonly options?: { connectionString?: string; host?: string; port?: number; database?: string; max?: number };
}

/** https://node-postgres.com/apis/client#queryconfig */
interface Config {
  readonly text?: string;
  readonly callback?: unknown;
  /** A cursor, a stream and a `Query` have it. */
  readonly submit?: unknown;
}

/** A `Pool` and the clients that it lends: https://node-postgres.com/apis/pool#events. */
export const watchPgPool: Watch = (client, upstream, findTarget) => {
  if (!hasMethods(client, 'query', 'connect', 'on', 'off')) return null;
  if (typeof (client as Partial<Pool>).totalCount !== 'number') return null;
  const pool = client as unknown as Pool;
  const target = findTarget('sql', 'postgres', findHost(pool));
  const lent = new Map<Client, () => void>();
  const stopWaits = surroundLending(pool, 'connect', upstream.addPool(target, pool, readSize));
  const stopAcquire = listenShared(pool, 'acquire', (one: Client) => {
    if (!lent.has(one)) lent.set(one, surroundQuery(one, upstream, target));
  });
  const onRemove = (one: Client): void => {
    lent.get(one)?.();
    lent.delete(one);
  };
  const stopRemove = listenShared(pool, 'remove', onRemove);
  return () => {
    for (const stop of [stopWaits, stopAcquire, stopRemove]) stop();
    for (const one of lent.keys()) onRemove(one);
  };
};

const readSize = ({ options, totalCount: total, idleCount: idle, waitingCount: waiting }: Pool) => ({
  max: options?.max ?? null,
  total,
  idle,
  waiting,
});

/** A `Client` of the application's own, outside of a pool. */
export const watchPgClient: Watch = (client, upstream, findTarget) => {
  if (!hasMethods(client, 'query', 'connect', 'escapeIdentifier', 'on', 'off')) return null;
  const { host, port, database } = client as unknown as Client;
  return surroundQuery(client, upstream, findTarget('sql', 'postgres', serverName(host, port, database)));
};

/** Reads the server of a pool's options, with pg's own defaults. */
function findHost({ options = {} }: Pool): string {
  const { PGHOST, PGPORT, PGDATABASE } = process.env;
  const { connectionString, host = PGHOST ?? 'localhost', port = PGPORT ?? 5432, database = PGDATABASE } = options;
  return (connectionString === undefined ? null : serverInUrl(connectionString)) ?? serverName(host, port, database);
}

/** node-postgres has no event for a query: https://github.com/brianc/node-postgres/pull/3650. */
const surroundQuery = (client: object, upstream: Upstream, target: Target): (() => void) =>
  surround(client, 'query', (given, proceed) => {
    const [query, ...rest] = given;
    const config = typeof query === 'string' ? { text: query } : (query as Config | null | undefined);
    // A cursor, a stream, and a query with a callback of its own are not measured.
    if (typeof config?.text !== 'string' || config.submit !== undefined || config.callback !== undefined)
      return proceed(given);
    const call = upstream.begin(target, maskValues(config.text));
    return settling(() => proceed([query, ...endByCallback(rest, call)]), call);
  });
