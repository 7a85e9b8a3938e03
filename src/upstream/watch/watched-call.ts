import type { UpstreamKind } from '../../core/record.js';
import type { Call, Upstream } from '../upstream.js';

/** A call as a watched client tells of it. */
export interface WatchedCall {
  readonly kind: UpstreamKind;
  /** The first word of its target: `'postgres'`. */
  readonly client: string;
  readonly host: string;
  /** `'query'`, or the command. */
  readonly method: string;
  /** The statement, or the command: calls that are alike have one text. It is kept while the request runs, and never shown. */
  readonly what: string;
  /** It is made through a driver, which may be heard as well. */
  readonly driven?: boolean;
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

/** Passes on what a result settles to, and ends its call then. */
export const untilEnd = <T>(result: PromiseLike<T>, end: EndCall): PromiseLike<T> =>
  result.then(
    (value) => {
      end(false);
      return value;
    },
    (error) => {
      end(true);
      throw error;
    },
  );

/** Who hears what a watched client tells. */
export interface Hearer {
  /** `known: false`: the code that runs now may be another request's. */
  begin(call: WatchedCall, whose?: { known: boolean }): EndCall;
  /** A call that is told of when it is over: nobody knows whose it was. */
  ended(call: WatchedCall, durationMs: number): void;
}

/** Hears of one client's calls; what it returns stops that. Null: it is no such client. */
export type Watch = (client: object, hearer: Hearer) => (() => void) | null;

/** `db:5432/shop`; what is not known is left out. */
export function serverName(host: unknown, port: unknown, database: unknown): string {
  const isLabel = (part: unknown): part is string | number =>
    typeof part === 'number' || (typeof part === 'string' && part !== '');
  // A socket's path is on this machine.
  const server = isLabel(host) ? (String(host).startsWith('/') ? 'localhost' : String(host)) : 'unknown';
  return `${server}${isLabel(port) ? `:${port}` : ''}${isLabel(database) ? `/${database}` : ''}`;
}

/** The same of a URL; it may hold a password. */
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
