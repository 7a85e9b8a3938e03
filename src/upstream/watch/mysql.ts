import { errorMonitor, type EventEmitter } from 'node:events';
import { requestContext, type RequestState } from '../../request/request-state.js';
import type { Channels } from '../channels.js';
import { shapeOf } from './statement.js';
import { endingCallback, surround, surroundLending, type Callback } from './surround.js';
import { hasMethods, serverName, type EndCall, type Hearer, type Watch } from './watched-call.js';

interface Config {
  readonly host?: string;
  readonly port?: number;
  readonly socketPath?: string;
  readonly database?: string;
}
interface Queue {
  readonly length: number;
}

/** The part of mysql2's `Pool` that counts connections has no public name; null where a version has none. */
interface Pool {
  readonly config?: { readonly connectionLimit?: number; readonly connectionConfig?: Config };
  readonly _allConnections?: Queue;
  readonly _freeConnections?: Queue;
  readonly _connectionQueue?: Queue;
}

/** A statement that the pool has made for its connection. */
interface Command extends EventEmitter {
  readonly sql?: string;
  onResult?: Callback;
}

/** The connections of mysql2 that one application's calls are read from; `close()` leaves them as they were. */
export class MySqlConnections {
  private readonly known = new WeakMap<object, { readonly isWatched: boolean; readonly stop: () => void }>();
  private readonly surrounded = new Set<WeakRef<object>>();

  constructor(private readonly hearer: Hearer) {}

  /** Pools that nobody watches lend their connections on a channel of mysql2 3.20. */
  subscribe(channels: Channels): void {
    channels.on(`${LENDING}:start`, (traced: object) => void askedBy.set(traced, requestContext.getStore()));
    channels.bind(`${LENDING}:asyncStart`, requestContext, requestOf);
    channels.on(`${LENDING}:asyncStart`, ({ result }: { result?: object }) => this.add(result, null));
  }

  /**
   * A `Pool` or a connection. A query is surrounded: as soon as anybody subscribes to mysql2's channels of
   * queries, mysql2 handles the error of a query without a callback.
   */
  readonly watch: Watch = (client, hearer) => {
    if (hasMethods(client, 'getConnection', 'query', 'execute')) return this.watchPool(client as Pool, hearer);
    if (!hasMethods(client, 'query', 'execute', 'beginTransaction', 'unprepare')) return null;
    this.add(client, hearer);
    return () => this.known.get(client)?.stop();
  };

  private watchPool(pool: Pool, hearer: Hearer): () => void {
    const host = hostOf(pool.config?.connectionConfig);
    const beginWait = hearer.pool(pool, { kind: 'sql', client: 'mysql', host }, readSize);
    return surroundLending(pool, 'getConnection', beginWait, (connection) => this.add(connection, hearer));
  }

  /** `hearer` null: nobody watches it. */
  private add(connection: unknown, hearer: Hearer | null): void {
    if (typeof connection !== 'object' || connection === null || !hasMethods(connection, 'query', 'execute')) return;
    const known = this.known.get(connection);
    if (known !== undefined && (hearer === null || known.isWatched)) return;
    known?.stop();
    const stop = surroundStatements(connection, hearer ?? this.hearer);
    this.known.set(connection, { isWatched: hearer !== null, stop });
    for (const one of this.surrounded) if (one.deref() === undefined) this.surrounded.delete(one);
    if (known === undefined) this.surrounded.add(new WeakRef(connection));
  }

  close(): void {
    for (const one of this.surrounded) {
      const connection = one.deref();
      if (connection !== undefined) this.known.get(connection)?.stop();
    }
    this.surrounded.clear();
  }
}

const LENDING = 'tracing:mysql2:pool:connect';
/** The request that has asked a pool for a connection, which lends in the context of the request that gives it back. */
const askedBy = new WeakMap<object, RequestState | undefined>();
const requestOf = (traced: object): RequestState | undefined =>
  askedBy.has(traced) ? askedBy.get(traced) : requestContext.getStore();

/** The object of the callback API, which that of the promise API holds. */
export function coreOf(client: object): object {
  if (!hasMethods(client, 'query', 'execute')) return client;
  const { pool, connection } = client as { pool?: object; connection?: object };
  return [pool, connection].find((core) => core && hasMethods(core, 'query', 'execute')) ?? client;
}

const readSize = ({ config, _allConnections, _freeConnections, _connectionQueue }: Pool) => ({
  max: config?.connectionLimit || null,
  total: _allConnections?.length ?? null,
  idle: _freeConnections?.length ?? null,
  waiting: _connectionQueue?.length ?? null,
});

function hostOf({ host = 'localhost', port = 3306, socketPath, database }: Config = {}): string {
  return serverName(socketPath ?? host, socketPath === undefined ? port : undefined, database);
}

function surroundStatements(connection: object, hearer: Hearer): () => void {
  const host = hostOf((connection as { config?: Config }).config);
  const stops = ['query', 'execute'].map((name) =>
    surround(connection, name, (given, proceed) => {
      const what = shapeOf(statementOf(given[0]));
      return endByResult(given, proceed, hearer.begin({ kind: 'sql', client: 'mysql', host, method: name, what }));
    }),
  );
  return () => stops.forEach((stop) => stop());
}

function statementOf(given: unknown): string {
  const statement = typeof given === 'object' && given !== null ? (given as { sql?: unknown }).sql : given;
  return typeof statement === 'string' ? statement : '';
}

/** A callback ends the call; without one the command's own events do, and its error stays unhandled. */
function endByResult(
  given: readonly unknown[],
  proceed: (given: readonly unknown[]) => unknown,
  end: EndCall,
): unknown {
  const [made, ...rest] = given;
  const isFunction = (one: unknown): one is Callback => typeof one === 'function';
  const onResult = typeof made === 'object' && made !== null ? (made as Partial<Command>).onResult : undefined;
  let command: unknown;
  try {
    if (isFunction(onResult)) (made as Command).onResult = endingCallback(onResult, end);
    command = proceed([made, ...rest.map((one) => (isFunction(one) ? endingCallback(one, end) : one))]);
  } catch (error) {
    end(true);
    throw error;
  }
  if (isFunction(onResult) || rest.some(isFunction)) return command;
  if (typeof command !== 'object' || command === null || !hasMethods(command, 'once')) {
    end(false);
    return command;
  }
  const emitter = command as unknown as Command;
  emitter.once(errorMonitor, () => end(true));
  emitter.once('end', () => end(false));
  return command;
}
