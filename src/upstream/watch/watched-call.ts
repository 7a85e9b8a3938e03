import type { UpstreamKind } from '../../core/record.js';
import type { PoolSize } from '../pool.js';
import type { Call, Upstream } from '../upstream.js';

/** The server of a client. */
export interface WatchedServer {
  readonly kind: UpstreamKind;
  /** The first word of its target: `'postgres'`. */
  readonly client: string;
  readonly host: string;
}

/** A call of a watched client. */
export interface WatchedCall extends WatchedServer {
  /** `'query'`, or the command. */
  readonly method: string;
  /** The statement, or the command: calls that are alike have one text. It lives as long as the request, and is never shown. */
  readonly what: string;
}

/** Ends a call, once. */
export type EndCall = (failed: boolean) => void;

/** Returns what ends a call that has begun. */
export function endOf(upstream: Upstream, begun: Call): EndCall {
  let call: Call | null = begun;
  return (failed) => {
    if (call !== null) upstream.end(call, failed);
    call = null;
  };
}

/** Receives what a watched client does. */
export interface Hearer {
  begin(call: WatchedCall): EndCall;
  /** A call that a client reports at its end, without its request. */
  ended(call: WatchedCall, durationMs: number): void;
  /** Adds a pool to its target. Returns a function that begins a wait for a connection, and returns what ends the wait. */
  pool<P extends object>(pool: P, server: WatchedServer, readSize: (pool: P) => PoolSize): () => () => void;
}

/** Subscribes to one client; returns what ends that. Null: it is no such client. */
export type Watch = (client: object, hearer: Hearer) => (() => void) | null;

/** `db:5432/shop`; unknown parts are left out. */
export function serverName(host: unknown, port: unknown, database: unknown): string {
  const isLabel = (part: unknown): part is string | number =>
    typeof part === 'number' || (typeof part === 'string' && part !== '');
  // A socket's path is on this machine.
  const server = isLabel(host) ? (String(host).startsWith('/') ? 'localhost' : String(host)) : 'unknown';
  return `${server}${isLabel(port) ? `:${port}` : ''}${isLabel(database) ? `/${database}` : ''}`;
}

/** The server name of a URL, without its user and password; null for a text that is no URL. */
export function serverOf(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const { hostname, port, pathname } = new URL(url);
  return serverName(hostname, port, pathname.slice(1));
}

/** Whether `value` has these methods. */
export const hasMethods = <N extends string>(
  value: object,
  ...names: readonly N[]
): value is Record<N, (...given: unknown[]) => unknown> =>
  names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function');
