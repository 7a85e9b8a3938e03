import { requestContext, type RequestState } from '../../request/request-state.js';
import type { Channels } from '../channels.js';
import { endByCallback, surround, surroundLending } from './surround.js';
import type { Call } from '../request-time.js';
import { Stops } from './stops.js';
import { maskValues } from './statement.js';
import type { Upstream } from '../upstream.js';
import { hasMethods, serverName, type FindTarget, type Watch } from './watch.js';

interface Config {
  readonly host?: string;
  readonly port?: number;
  readonly socketPath?: string;
  readonly database?: string;
}
interface Connection {
  readonly config?: Config;
}
interface Queue {
  readonly length: number;
}

/** mysql2's `Pool`. Its lists of connections are not public: their counts are null in a version without them. */
interface Pool {
  readonly config?: { readonly connectionLimit?: number; readonly connectionConfig?: Config };
  readonly _allConnections?: Queue;
  readonly _freeConnections?: Queue;
  readonly _connectionQueue?: Queue;
}

/** A statement as an object. One that the pool hands to its connection has its callback in `onResult`. */
interface Command {
  readonly sql?: unknown;
  onResult?: unknown;
}

/** Reads one application's calls from mysql2's connections; `close()` puts those back as they were. */
export class MySqlConnections {
  private readonly stops = new Stops();
  /** Connections with the target of their watched pool. One that a channel has found first is wrapped anew for it. */
  private readonly watched = new WeakSet<object>();

  constructor(
    private readonly upstream: Upstream,
    /** Finds targets of pools that are not watched. */
    private readonly findTarget: FindTarget,
  ) {}

  /** Wraps connections of pools that nobody watches: mysql2 from 3.20 publishes each that a pool lends. */
  subscribe(channels: Channels): void {
    channels.on(`${LENDING}:start`, (traced: object) => void askedBy.set(traced, requestContext.getStore()));
    channels.bind(`${LENDING}:asyncStart`, requestContext, readRequest);
    channels.on(`${LENDING}:asyncStart`, ({ result }: { result?: object }) => {
      if (isConnection(result) && !this.stops.has(result)) this.surround(result, this.findTarget);
    });
  }

  /**
   * Watches a `Pool` or a connection by wrapping its methods. mysql2's channels of queries are not used: with a subscriber, mysql2
   * handles the error of a query without a callback, which the application would not see.
   */
  readonly watch: Watch = (client, upstream, findTarget) => {
    if (hasMethods(client, 'getConnection', 'query', 'execute')) {
      const pool: Pool & object = client;
      const target = findTarget('sql', 'mysql', findHost(pool.config?.connectionConfig));
      const beginWait = upstream.addPool(target, pool, readSize);
      return surroundLending(pool, 'getConnection', beginWait, (connection) => this.add(connection, findTarget));
    }
    if (!hasMethods(client, 'query', 'execute', 'beginTransaction', 'unprepare')) return null;
    this.add(client, findTarget);
    return () => {};
  };

  private add(connection: unknown, findTarget: FindTarget): void {
    if (!isConnection(connection) || this.watched.has(connection)) return;
    this.watched.add(connection);
    this.surround(connection, findTarget);
  }

  private surround(connection: Connection, findTarget: FindTarget): void {
    const target = findTarget('sql', 'mysql', findHost(connection.config));
    const begin = (text: string): Call | null => this.upstream.begin(target, text);
    const stops = ['query', 'execute'].map((name) =>
      surround(connection, name, (given, proceed) => measureStatement(given, proceed, begin)),
    );
    this.stops.set(connection, () => stops.forEach((stop) => stop()));
  }

  close(): void {
    this.stops.close();
  }
}

const isConnection = (connection: unknown): connection is Connection =>
  typeof connection === 'object' && connection !== null && hasMethods(connection, 'query', 'execute');

const LENDING = 'tracing:mysql2:pool:connect';
/** The request that waits for a connection. The pool lends one in the context of the request that released it. */
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

/** Measures a statement until its callback. One without a callback emits its result, and is not measured. */
function measureStatement(
  [statement, ...rest]: readonly unknown[],
  proceed: (given: readonly unknown[]) => unknown,
  begin: (text: string) => Call | null,
): unknown {
  const command = (typeof statement === 'object' && statement !== null ? statement : { sql: statement }) as Command;
  const isOfPool = typeof command.onResult === 'function';
  if (!isOfPool && !rest.some((one) => typeof one === 'function')) return proceed([statement, ...rest]);
  const call = begin(typeof command.sql === 'string' ? maskValues(command.sql) : '');
  if (isOfPool) [command.onResult] = endByCallback([command.onResult], call);
  try {
    return proceed([statement, ...endByCallback(rest, call)]);
  } catch (error) {
    call?.end(true);
    throw error;
  }
}
