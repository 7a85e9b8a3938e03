import { databaseOf, type Database } from './database.js';
import { OpenCalls, type WatchableClient } from './watched-client.js';

interface KnexQuery {
  /** Of what a builder runs; the statements of transactions themselves have none, and no end. */
  readonly __knexQueryUid?: string;
  readonly sql: string;
}
type Connection = string | (Database & { connectionString?: string; server?: string });
interface Knex {
  on(event: string, hear: (...args: never[]) => void): unknown;
  removeListener(event: string, hear: (...args: never[]) => void): unknown;
  readonly client: { readonly config?: { readonly client?: unknown; readonly connection?: unknown } };
}

/** https://knexjs.org/guide/interfaces.html#events */
export const knex: WatchableClient = {
  name: 'knex',
  recognizes: (client) =>
    typeof client === 'function' && 'raw' in client && 'client' in client && 'removeListener' in client,
  watch(client: Knex, watching) {
    const calls = new OpenCalls<string>(watching);
    const named = { kind: 'sql' as const, ...serverOf(client), method: 'query', path: '' };
    const heard: [string, (...args: never[]) => void][] = [
      [
        'query',
        ({ __knexQueryUid: id, sql }: KnexQuery) => {
          if (id !== undefined) calls.begin(id, named, sql);
        },
      ],
      ['query-response', (_response: unknown, query: KnexQuery) => calls.end(query.__knexQueryUid ?? '', false)],
      ['query-error', (_error: unknown, query: KnexQuery) => calls.end(query.__knexQueryUid ?? '', true)],
    ];
    for (const [event, hear] of heard) client.on(event, hear);
    return () => {
      for (const [event, hear] of heard) client.removeListener(event, hear);
    };
  },
};

/** The first word of a target, by the beginning of what knex and TypeORM call their drivers. */
export function clientOf(driver: unknown): string {
  const name = typeof driver === 'string' ? driver : 'sql';
  const known = [
    [/^(pg|postgres|aurora-postgres)/, 'postgres'],
    [/^(mysql|mariadb|aurora-mysql)/, 'mysql'],
    [/sqlite/, 'sqlite'],
  ] as const;
  return known.find(([driverName]) => driverName.test(name))?.[1] ?? name;
}

function serverOf({ client: { config = {} } }: Knex): { client: string; host: string } {
  const { connection } = config;
  // One that is a function is asked for each connection: nobody knows it here.
  const given = (typeof connection === 'function' ? {} : (connection ?? {})) as Connection;
  const database = typeof given === 'string' ? { url: given } : { ...given, url: given.connectionString };
  return { client: clientOf(config.client), host: databaseOf(database) };
}
