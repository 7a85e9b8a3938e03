import type { UpstreamKind } from '../../core/record.js';
import { Pools, type PoolSize } from '../pool.js';
import type { Target } from '../target.js';
import type { Call } from '../request-time.js';
import type { Upstream } from '../upstream.js';

/** The server of a watched client: its calls, and the waits for connections to it. */
export class WatchedServer {
  constructor(
    private readonly upstream: Upstream,
    private readonly kind: UpstreamKind,
    /** The first word of its target: `'postgres'`. */
    private readonly client: string,
    private readonly host: string,
    /** `target` of `perf.watch()`; null: the target is named by client and host. */
    private readonly named: string | null,
  ) {}

  /** `method`: `'query'`, or the command. `what`: the statement; calls of one text are alike. It is never shown. */
  begin(method: string, what: string): Call | null {
    return this.upstream.begin(this.findTarget(method), what);
  }

  /** A call that a client reports at its end, without its request. */
  ended(method: string, durationMs: number): void {
    this.upstream.endedUnplaced(this.findTarget(method), durationMs);
  }

  /** Returns a function that begins a wait for a connection of this pool. */
  addPool<P extends object>(pool: P, readSize: (pool: P) => PoolSize): () => Call | null {
    const target = this.findTarget('connect');
    (target.pools ??= new Pools()).add(pool, readSize);
    return () => this.upstream.beginWait(target);
  }

  private findTarget(method: string): Target {
    const { kind, client, host, named } = this;
    const { targets } = this.upstream;
    return named === null ? targets.find({ kind, client, host, method, path: '' }) : targets.named(named, kind);
  }
}

export type ServerAt = (kind: UpstreamKind, client: string, host: string) => WatchedServer;

/** Subscribes to one client; returns a function that unsubscribes. Null: it is no such client. */
export type Watch = (client: object, serverAt: ServerAt) => (() => void) | null;

/** `db:5432/shop`; unknown parts are left out. */
export function serverName(host: unknown, port: unknown, database: unknown): string {
  const isLabel = (part: unknown): part is string | number =>
    typeof part === 'number' || (typeof part === 'string' && part !== '');
  // A socket's path is on this machine.
  const server = isLabel(host) ? (String(host).startsWith('/') ? 'localhost' : String(host)) : 'unknown';
  return `${server}${isLabel(port) ? `:${port}` : ''}${isLabel(database) ? `/${database}` : ''}`;
}

/** The server name of a URL, without its user and password; null for a text that is no URL. */
export function serverInUrl(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const { hostname, port, pathname } = new URL(url);
  return serverName(hostname, port, pathname.slice(1));
}

export const hasMethods = <N extends string>(
  value: object,
  ...names: readonly N[]
): value is Record<N, (...given: unknown[]) => unknown> =>
  names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function');
