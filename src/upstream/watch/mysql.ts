import { errorMonitor, EventEmitter } from 'node:events';
import { listenShared } from '../../core/shared-listener.js';
import { requestContext, type RequestState } from '../../request/request-state.js';
import type { Channels } from '../channels.js';
import { removeValues } from './statement.js';
import { endingCallback, surround, surroundLending, type Callback, type Ending } from './surround.js';
import { Stops } from './stops.js';
import { hasMethods, serverName, type ServerAt, type Watch } from './watched-server.js';

interface Config {
  readonly host?: string;
  readonly port?: number;
  readonly socketPath?: string;
  readonly database?: string;
}
interface Queue {
  readonly length: number;
  get?(index: number): unknown;
}

/** mysql2's `Pool`. Its lists of connections are not public: their counts are null in a version without them. */
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

/** Reads one application's calls from mysql2's connections; `close()` puts those back as they were. */
export class MySqlConnections {
  private readonly stops = new Stops();
  private readonly watched = new WeakSet<object>();

  /** `serverAt`: for connections of pools that are not watched. */
  constructor(private readonly serverAt: ServerAt) {}

  /** Pools lend their connections on a channel of mysql2 3.20. */
  subscribe(channels: Channels): void {
    channels.on(`${LENDING}:start`, (traced: object) => void askedBy.set(traced, requestContext.getStore()));
    channels.bind(`${LENDING}:asyncStart`, requestContext, readRequest);
    channels.on(`${LENDING}:asyncStart`, ({ result }: { result?: object }) => {
      if (isConnection(result) && !this.stops.has(result))
        this.stops.set(result, surroundStatements(result, this.serverAt));
    });
  }

  /**
   * Watches a `Pool` or a connection by wrapping its methods. mysql2's channels of queries are not used: with a subscriber, mysql2
   * handles the error of a query without a callback, which the application would not see.
   */
  readonly watch: Watch = (client, serverAt) => {
    if (hasMethods(client, 'getConnection', 'query', 'execute')) return this.watchPool(client as Pool, serverAt);
    if (!hasMethods(client, 'query', 'execute', 'beginTransaction', 'unprepare')) return null;
    this.add(client, serverAt);
    return () => {};
  };

  private watchPool(pool: Pool, serverAt: ServerAt): () => void {
    const server = serverAt('sql', 'mysql', findHost(pool.config?.connectionConfig));
    const beginWait = server.addPool(pool, readSize);
    return surroundLending(pool, 'getConnection', beginWait, {
      onLent: (connection) => this.add(connection, serverAt),
      readQueued: () => pool._connectionQueue?.get?.(pool._connectionQueue.length - 1),
    });
  }

  private add(connection: unknown, serverAt: ServerAt): void {
    if (!isConnection(connection) || this.watched.has(connection)) return;
    this.watched.add(connection);
    this.stops.set(connection, surroundStatements(connection, serverAt));
  }

  close(): void {
    this.stops.close();
  }
}

const isConnection = (connection: unknown): connection is object =>
  typeof connection === 'object' && connection !== null && hasMethods(connection, 'query', 'execute');

const LENDING = 'tracing:mysql2:pool:connect';
/** The request that waits for a connection: the pool lends it in the context of the request that released it. */
const askedBy = new WeakMap<object, RequestState | undefined>();
const readRequest = (traced: object): RequestState | undefined =>
  askedBy.has(traced) ? askedBy.get(traced) : requestContext.getStore();

/** The object of the callback API inside that of the promise API. */
export function findCore(client: object): object {
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

function findHost({ host = 'localhost', port = 3306, socketPath, database }: Config = {}): string {
  return serverName(socketPath ?? host, socketPath === undefined ? port : undefined, database);
}

function surroundStatements(connection: object, serverAt: ServerAt): () => void {
  const server = serverAt('sql', 'mysql', findHost((connection as { config?: Config }).config));
  const open = new Set<Ending>();
  const begin = (name: string, statement: string): Ending | null => {
    const call = server.begin(name, statement);
    if (call === null) return null;
    const ending: Ending = {
      end(failed) {
        open.delete(ending);
        call.end(failed);
      },
    };
    open.add(ending);
    return ending;
  };
  // A connection that is lost or destroyed ends no command without a callback.
  const onClose = (): void => {
    for (const ending of open) ending.end(true);
  };
  const { stream } = connection as { stream?: unknown };
  const stops = ['query', 'execute'].map((name) =>
    surround(connection, name, (given, proceed) =>
      endByResult(given, proceed, begin(name, removeValues(readStatement(given[0])))),
    ),
  );
  if (stream instanceof EventEmitter) stops.push(listenShared(stream, 'close', onClose));
  return () => stops.forEach((stop) => stop());
}

function readStatement(given: unknown): string {
  const statement = typeof given === 'object' && given !== null ? (given as { sql?: unknown }).sql : given;
  return typeof statement === 'string' ? statement : '';
}

/** A callback ends the call; without one the command's own events do, and its error stays unhandled. */
function endByResult(
  given: readonly unknown[],
  proceed: (given: readonly unknown[]) => unknown,
  call: Ending | null,
): unknown {
  const [made, ...rest] = given;
  const isFunction = (one: unknown): one is Callback => typeof one === 'function';
  const onResult = typeof made === 'object' && made !== null ? (made as Partial<Command>).onResult : undefined;
  if (isFunction(onResult)) (made as Command).onResult = endingCallback(onResult, call);
  let command: unknown;
  try {
    command = proceed([made, ...rest.map((one) => (isFunction(one) ? endingCallback(one, call) : one))]);
  } catch (error) {
    call?.end(true);
    throw error;
  }
  if (isFunction(onResult) || rest.some(isFunction)) return command;
  if (typeof command !== 'object' || command === null || !hasMethods(command, 'once')) {
    call?.end(false);
    return command;
  }
  const emitter = command as unknown as Command;
  emitter.once(errorMonitor, () => call?.end(true));
  emitter.once('end', () => call?.end(false));
  return command;
}
