import type { EventEmitter } from 'node:events';
import { listenShared } from '../../core/shared-listener.js';
import { hearQueries } from './pg-query.js';
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
  readonly options?: { connectionString?: string; host?: string; port?: number; database?: string };
}

/** A `Pool` and the clients that it lends: https://node-postgres.com/apis/pool#events. */
export function watchPgPool(client: object, hearer: Hearer): (() => void) | null {
  if (!hasMethods(client, 'query', 'connect', 'on', 'off')) return null;
  if (typeof (client as Partial<Pool>).totalCount !== 'number') return null;
  const pool = client as unknown as Pool;
  let host = hostOfPool(pool);
  const lent = new Map<Client, () => void>();
  const handedOver = new WeakSet<Client>();
  const onAcquire = (one: Client): void => {
    host = serverName(one.host, one.port, one.database);
    if (!lent.has(one)) {
      const begin = (what: string): EndCall => hearer.begin(call(what), { known: !handedOver.has(one) });
      lent.set(one, hearQueries(one, begin, { isPool: false }));
    }
    // A callback that has waited for a client runs in the code of who has given it back.
    handedOver.add(one);
    queueMicrotask(() => handedOver.delete(one));
  };
  const onRemove = (one: Client): void => {
    lent.get(one)?.();
    lent.delete(one);
  };
  const call = (what: string) => ({ kind: 'sql', client: 'postgres', host, method: 'query', what }) as const;
  const stop = hearQueries(pool, (what) => hearer.begin(call(what)), { isPool: true });
  const stopAcquire = listenShared(pool, 'acquire', onAcquire);
  const stopRemove = listenShared(pool, 'remove', onRemove);
  return () => {
    for (const one of [stopAcquire, stopRemove, stop]) one();
    for (const one of lent.keys()) onRemove(one);
  };
}

/** A `Client` that no pool lends. */
export function watchPgClient(client: object, hearer: Hearer): (() => void) | null {
  if (!hasMethods(client, 'query', 'connect', 'escapeIdentifier', 'on', 'off')) return null;
  const { host, port, database } = client as unknown as Client;
  const server = serverName(host, port, database);
  const call = { kind: 'sql', client: 'postgres', host: server, method: 'query' } as const;
  return hearQueries(client, (what) => hearer.begin({ ...call, what }), { isPool: false });
}

/** Until it has lent a client, which knows. */
function hostOfPool({ options = {} }: Pool): string {
  const { PGHOST, PGPORT, PGDATABASE } = process.env;
  const { connectionString, host = PGHOST ?? 'localhost', port = PGPORT ?? 5432, database = PGDATABASE } = options;
  return (connectionString === undefined ? null : serverOf(connectionString)) ?? serverName(host, port, database);
}
