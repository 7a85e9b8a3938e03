import { EventEmitter, errorMonitor } from 'node:events';
import { listenShared } from '../../core/shared-listener.js';
import { endingCallback, settling, surround, surroundLending, type Callback } from './surround.js';
import { hasMethods, serverName, serverOf, type EndCall, type Hearer } from './watched-call.js';

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
export function watchPgPool(client: object, hearer: Hearer): (() => void) | null {
  if (!hasMethods(client, 'query', 'connect', 'on', 'off')) return null;
  if (typeof (client as Partial<Pool>).totalCount !== 'number') return null;
  const pool = client as unknown as Pool;
  const host = hostOfPool(pool);
  const lent = new Map<Client, () => void>();
  const stopWaits = surroundLending(
    pool,
    'connect',
    hearer.pool(pool, { kind: 'sql', client: 'postgres', host }, readSize),
  );
  const stopAcquire = listenShared(pool, 'acquire', (one: Client) => {
    if (!lent.has(one)) lent.set(one, surroundQuery(one, hearer, host));
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
export function watchPgClient(client: object, hearer: Hearer): (() => void) | null {
  if (!hasMethods(client, 'query', 'connect', 'escapeIdentifier', 'on', 'off')) return null;
  const { host, port, database } = client as unknown as Client;
  return surroundQuery(client, hearer, serverName(host, port, database));
}

/** The clients of a pool connect to the same server. */
function hostOfPool({ options = {} }: Pool): string {
  const { PGHOST, PGPORT, PGDATABASE } = process.env;
  const { connectionString, host = PGHOST ?? 'localhost', port = PGPORT ?? 5432, database = PGDATABASE } = options;
  return (connectionString === undefined ? null : serverOf(connectionString)) ?? serverName(host, port, database);
}

/** node-postgres has no event for a query: https://github.com/brianc/node-postgres/pull/3650. */
const surroundQuery = (client: object, hearer: Hearer, host: string): (() => void) =>
  surround(client, 'query', (given, proceed) => {
    const config = configOf(given[0]);
    if (config === null) return proceed(given);
    const end = hearer.begin({ kind: 'sql', client: 'postgres', host, method: 'query', what: config.text ?? '' });
    const rest = given.slice(1).map((one) => (typeof one === 'function' ? endingCallback(one as Callback, end) : one));
    const isSubmittable = typeof config.submit === 'function';
    if (isSubmittable) endByEvents(config, end);
    // A `Query` with a callback emits no error.
    if (typeof config.callback === 'function')
      Object.defineProperty(config, 'callback', { value: endingCallback(config.callback, end), enumerable: true });
    const run = (): unknown => proceed([typeof given[0] === 'string' ? given[0] : config, ...rest]);
    // A query object that would run when it is awaited is not awaited.
    return isSubmittable ? run() : settling(run, end);
  });

/** A copy of the query, so that the caller's own object stays as it is; null: the client rejects the argument itself. */
function configOf(given: unknown): Config | null {
  if (typeof given === 'string') return { text: given };
  if (typeof given !== 'object' || given === null) return null;
  if (typeof (given as Config).submit === 'function') return given;
  // An object of some class may have getters.
  return Object.getPrototypeOf(given) === Object.prototype ? { ...given } : (Object.create(given) as Config);
}

/** A cursor, a stream and a `Query` emit their end. */
function endByEvents(submitted: unknown, end: EndCall): void {
  if (!(submitted instanceof EventEmitter)) return end(false);
  // A cursor emits its error only to listeners, and fails no code with it.
  if (hasMethods(submitted, 'read', 'close') && !hasMethods(submitted, 'pipe')) submitted.on('error', () => {});
  submitted.once(errorMonitor, () => end(true));
  for (const event of ['end', 'close']) submitted.once(event, () => end(false));
}
