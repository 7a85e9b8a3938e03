import { EventEmitter, errorMonitor } from 'node:events';
import { listenShared } from '../../core/shared-listener.js';
import { endingCallback, settling, surround, surroundLending, type Callback } from './surround.js';
import type { Call } from '../request-time.js';
import { hasMethods, serverInUrl, serverName, type ServerAt, type WatchedServer } from './watched-server.js';

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
  readonly callback?: Callback;
  /** A cursor, a stream and a `Query` have it. */
  readonly submit?: unknown;
}

/** A `Pool` and the clients that it lends: https://node-postgres.com/apis/pool#events. */
export function watchPgPool(client: object, serverAt: ServerAt): (() => void) | null {
  if (!hasMethods(client, 'query', 'connect', 'on', 'off')) return null;
  if (typeof (client as Partial<Pool>).totalCount !== 'number') return null;
  const pool = client as unknown as Pool;
  const server = serverAt('sql', 'postgres', findHost(pool));
  const lent = new Map<Client, () => void>();
  const stopWaits = surroundLending(pool, 'connect', server.addPool(pool, readSize));
  const stopAcquire = listenShared(pool, 'acquire', (one: Client) => {
    if (!lent.has(one)) lent.set(one, surroundQuery(one, server));
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
}

const readSize = ({ options, totalCount: total, idleCount: idle, waitingCount: waiting }: Pool) => ({
  max: options?.max ?? null,
  total,
  idle,
  waiting,
});

/** A `Client` that no pool lends. */
export function watchPgClient(client: object, serverAt: ServerAt): (() => void) | null {
  if (!hasMethods(client, 'query', 'connect', 'escapeIdentifier', 'on', 'off')) return null;
  const { host, port, database } = client as unknown as Client;
  return surroundQuery(client, serverAt('sql', 'postgres', serverName(host, port, database)));
}

/** The clients of a pool connect to the same server. */
function findHost({ options = {} }: Pool): string {
  const { PGHOST, PGPORT, PGDATABASE } = process.env;
  const { connectionString, host = PGHOST ?? 'localhost', port = PGPORT ?? 5432, database = PGDATABASE } = options;
  return (connectionString === undefined ? null : serverInUrl(connectionString)) ?? serverName(host, port, database);
}

/** node-postgres has no event for a query: https://github.com/brianc/node-postgres/pull/3650. */
const surroundQuery = (client: object, server: WatchedServer): (() => void) =>
  surround(client, 'query', (given, proceed) => {
    const [query] = given;
    const config = typeof query === 'string' ? { text: query } : (query as Config | null | undefined);
    // The client rejects it itself.
    if (typeof config !== 'object' || config === null) return proceed(given);
    const call = server.begin('query', config.text ?? '');
    const rest = given.slice(1).map((one) => (typeof one === 'function' ? endingCallback(one as Callback, call) : one));
    const isSubmittable = typeof config.submit === 'function';
    if (isSubmittable) endByEvents(config, call);
    const changed =
      typeof config.callback === 'function' ? withCallback(config, endingCallback(config.callback, call)) : query;
    const run = (): unknown => proceed([changed, ...rest]);
    // A query object that would run when it is awaited is not awaited.
    return isSubmittable ? run() : settling(run, call);
  });

/** A copy of the query, so that the caller's own object stays as it is. A `Query` with a callback emits no error: that one is changed. */
function withCallback(config: Config, callback: Callback): Config {
  const isPlain = Object.getPrototypeOf(config) === Object.prototype;
  // An object of some class may have getters.
  const changed =
    typeof config.submit === 'function' ? config : isPlain ? { ...config } : (Object.create(config) as Config);
  return Object.defineProperty(changed, 'callback', { value: callback, enumerable: true });
}

/** A cursor, a stream and a `Query` emit their end. */
function endByEvents(submitted: unknown, call: Call | null): void {
  if (!(submitted instanceof EventEmitter)) return call?.end(false);
  // A cursor emits its error only to listeners, and fails no code with it.
  if (hasMethods(submitted, 'read', 'close') && !hasMethods(submitted, 'pipe')) submitted.on('error', () => {});
  submitted.once(errorMonitor, () => call?.end(true));
  for (const event of ['end', 'close']) submitted.once(event, () => call?.end(false));
}
