import type { EventEmitter } from 'node:events';
import { PerfError } from '../../core/perf.error.js';
import { listenShared } from '../../core/shared-listener.js';
import type { Call } from '../request-time.js';
import { maskValues } from './statement.js';
import { hasMethods, serverInUrl, serverName, type Watch } from './watch.js';

/** The documented part of tarn's pool: https://github.com/Vincit/tarn.js. */
interface Pool {
  readonly max?: number;
  numUsed(): number;
  numFree(): number;
  numPendingAcquires(): number;
  on(event: string, listener: (id: number) => void): void;
  removeListener(event: string, listener: (id: number) => void): void;
}

/** The part of a knex instance that its types and guide show. */
interface Knex extends EventEmitter {
  readonly client: {
    readonly dialect?: string;
    readonly driverName?: string;
    readonly config?: { readonly connection?: unknown };
    readonly pool?: object;
  };
}

/**
 * https://knexjs.org/guide/interfaces.html#events; a builder's own events come for whatever ends it, timeouts too.
 * @throws PERF_ERR_WATCH for a driver that is synchronous
 */
export const watchKnex: Watch = (client, upstream, findTarget) => {
  if (typeof client !== 'function' || !hasMethods(client, 'raw', 'transaction', 'on', 'off')) return null;
  const knex = client as unknown as Knex;
  const { dialect, driverName, pool } = knex.client;
  if (driverName === 'better-sqlite3')
    throw new PerfError(
      'PERF_ERR_WATCH',
      'perf.watch() was given a knex of better-sqlite3, which runs each query on the event loop: its time is the work of the request ' +
        'itself, `busyMs` and `ownCpuMs`, and no wait for an upstream. It needs no perf.watch().',
    );
  const target = findTarget('sql', dialect === undefined ? 'knex' : (NAMES[dialect] ?? dialect), findHost(knex));
  const known = new WeakSet<EventEmitter>();
  let stopped = false;
  const onStart = (builder: EventEmitter): void => {
    if (known.has(builder)) return;
    known.add(builder);
    // A builder's queries run one after the other. Two are open when it is awaited twice; they are alike, so either may end.
    const open: (Call | null)[] = [];
    listenShared(builder, 'query', ({ sql = '' }: { readonly sql?: string }) => {
      if (!stopped) open.push(upstream.begin(target, maskValues(sql)));
    });
    listenShared(builder, 'query-response', () => open.shift()?.end(false));
    listenShared(builder, 'query-error', () => open.shift()?.end(true));
  };
  const stopQueries = listenShared(knex, 'start', onStart);
  const stopWaits = isTarn(pool) ? watchPool(pool, upstream.addPool(target, pool, readSize)) : null;
  return () => {
    stopped = true;
    stopQueries();
    stopWaits?.();
  };
};

const isTarn = (pool: object | undefined): pool is Pool =>
  pool !== undefined && hasMethods(pool, 'numUsed', 'numFree', 'numPendingAcquires', 'on', 'removeListener');

const readSize = (pool: Pool) => ({
  max: pool.max ?? null,
  total: pool.numUsed() + pool.numFree(),
  idle: pool.numFree(),
  waiting: pool.numPendingAcquires(),
});

/** Times waits by the pool's events: a request for a connection, and its success or failure under the same number. */
function watchPool(pool: Pool, beginWait: () => Call | null): () => void {
  const waits = new Map<number, Call | null>();
  const onEnd = (id: number): void => {
    waits.get(id)?.end(false);
    waits.delete(id);
  };
  const listeners: [string, (id: number) => void][] = [
    ['acquireRequest', (id) => void waits.set(id, beginWait())],
    ['acquireSuccess', onEnd],
    ['acquireFail', onEnd],
  ];
  for (const [event, listener] of listeners) pool.on(event, listener);
  return () => listeners.forEach(([event, listener]) => pool.removeListener(event, listener));
}

/** Knex's names of databases, and those that targets of other clients have. */
const NAMES: Readonly<Record<string, string>> = { postgresql: 'postgres', mysql2: 'mysql', mariadb: 'mysql' };

function findHost({ client }: Knex): string {
  const connection = client.config?.connection;
  if (typeof connection === 'string') return serverInUrl(connection) ?? 'unknown';
  if (typeof connection !== 'object' || connection === null) return 'unknown';
  const { connectionString, host, port, database, filename } = connection as Record<string, unknown>;
  if (typeof filename === 'string') return 'localhost';
  if (typeof connectionString === 'string') return serverInUrl(connectionString) ?? 'unknown';
  return serverName(host, port, database);
}
