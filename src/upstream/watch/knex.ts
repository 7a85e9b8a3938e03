import type { EventEmitter } from 'node:events';
import { listenShared } from '../../core/shared-listener.js';
import { hasMethods, serverName, serverOf, type EndCall, type Hearer } from './watched-call.js';

/** The part of a knex instance that its types and guide show. */
interface Knex extends EventEmitter {
  readonly client: { readonly dialect?: string; readonly config?: { readonly connection?: unknown } };
}

/** https://knexjs.org/guide/interfaces.html#events; a builder's own events come for whatever ends it, timeouts too. */
export function watchKnex(client: object, hearer: Hearer): (() => void) | null {
  if (typeof client !== 'function' || !hasMethods(client, 'raw', 'transaction', 'on', 'off')) return null;
  const knex = client as unknown as Knex;
  const { dialect } = knex.client;
  const host = hostOf(knex);
  const name = dialect === undefined ? 'knex' : (NAMES[dialect] ?? dialect);
  const heard = new WeakSet<EventEmitter>();
  let stopped = false;
  const onStart = (builder: EventEmitter): void => {
    if (heard.has(builder)) return;
    heard.add(builder);
    // A builder has one query after the other in flight; of one that is awaited twice, two that are alike.
    const open: EndCall[] = [];
    listenShared(builder, 'query', ({ sql = '' }: { readonly sql?: string }) => {
      if (stopped) return;
      const call = { kind: 'sql', client: name, host, method: 'query', what: sql, driven: true } as const;
      open.push(hearer.begin(call));
    });
    listenShared(builder, 'query-response', () => open.shift()?.(false));
    listenShared(builder, 'query-error', () => open.shift()?.(true));
  };
  const stop = listenShared(knex, 'start', onStart);
  return () => {
    stopped = true;
    stop();
  };
}

/** As the other clients of these databases are named. */
const NAMES: Readonly<Record<string, string>> = { postgresql: 'postgres', mysql2: 'mysql', mariadb: 'mysql' };

function hostOf({ client }: Knex): string {
  const connection = client.config?.connection;
  if (typeof connection === 'string') return serverOf(connection) ?? 'unknown';
  if (typeof connection !== 'object' || connection === null) return 'unknown';
  const { connectionString, host, port, database, filename } = connection as Record<string, unknown>;
  if (typeof filename === 'string') return 'localhost';
  if (typeof connectionString === 'string') return serverOf(connectionString) ?? 'unknown';
  return serverName(host, port, database);
}
