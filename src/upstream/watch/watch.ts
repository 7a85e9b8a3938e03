import type { UpstreamKind } from '../../core/record.js';
import type { Target } from '../target.js';
import type { Upstream } from '../upstream.js';

/** The target of a watched client: `target` of `perf.watch()`, else a name such as `postgres db:5432/shop`. */
export type FindTarget = (kind: UpstreamKind, client: string, host: string, method?: string) => Target;

/** Subscribes to a client of one kind; returns a function that unsubscribes. Null: the client is of another kind. */
export type Watch = (client: object, upstream: Upstream, findTarget: FindTarget) => (() => void) | null;

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
