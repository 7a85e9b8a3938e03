import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { RequestState } from '../request/request-state.js';
import { compressionOf, type RouteCompression } from './route-compression.js';
import { present, type FieldValue, type ResponseHead } from './rules/policy.js';
import { KeptResponse, type SharedFlight } from './shared-response/shared-flight.js';

interface AnyResponse extends ServerResponse {
  /** Express's; not there where a server of Node's own answers. */
  readonly app?: { get?(setting: string): unknown };
  readonly stream?: { destroyed?: boolean } | null;
}

/** `writeHead`'s headers: an object, a flat list of names and values, or a list of pairs. */
export type GivenHeaders = OutgoingHttpHeaders | OutgoingHttpHeader[] | null | undefined;

/** The head of a response that the application has given, and Node has not sent. */
export class HeldHead implements ResponseHead {
  /** As it was when the application had answered: what it sets while the body is being encoded comes too late. */
  status: number;

  constructor(
    readonly state: RequestState,
    private readonly request: IncomingMessage,
    private readonly response: AnyResponse,
    private readonly unrouted: RouteCompression,
    /** The client's own `If-None-Match`, which the application may see otherwise. */
    private readonly ifNoneMatch: string | undefined,
  ) {
    this.status = response.statusCode;
    // The answer is there: what the client has may be seen again.
    if (state.hiddenConditions !== null) Object.assign(request.headers, state.hiddenConditions);
  }

  get route(): RouteCompression {
    return compressionOf(this.state) ?? this.unrouted;
  }

  get method(): string {
    return this.request.method ?? 'GET';
  }

  /** The client has gone: work for it alone is wasted. */
  get gone(): boolean {
    return this.response.destroyed || this.response.stream?.destroyed === true;
  }

  /** `@NoCompression()` decorates its handler. */
  get off(): boolean {
    return this.route.off || this.state.uncompressed;
  }

  /** Others wait for this response (a flight), or it was kept for others before; null for a response of its own. */
  get shared(): SharedFlight | KeptResponse | null {
    return this.state.sharedAnswer as SharedFlight | KeptResponse | null;
  }

  /** A kept answer stands for whatever body comes. */
  get isKept(): boolean {
    return this.shared instanceof KeptResponse && this.status === 200;
  }

  /** Whether a response without a tag may get one: not where Express's are switched off. */
  get tags(): boolean {
    return this.response.app?.get?.('etag') !== false;
  }

  /** The length that it tells, bytes; null without one. */
  get length(): number | null {
    const given = this.header('content-length');
    return given === undefined ? null : Number(given);
  }

  header(name: string): FieldValue {
    return present(this.response.getHeader(name));
  }

  headers(): Readonly<Record<string, FieldValue>> {
    return this.response.getHeaders();
  }

  requestHeader(name: 'accept-encoding' | 'if-none-match' | 'if-modified-since' | 'cache-control'): string | undefined {
    if (name === 'if-none-match' && this.ifNoneMatch !== undefined) return this.ifNoneMatch;
    return this.request.headers[name];
  }

  /** The prototype's own function: the response's refuses what comes too late. */
  set(name: string, value: Exclude<FieldValue, undefined>): void {
    prototypeOf(this.response).setHeader.call(this.response, name, value);
  }

  remove(name: string): void {
    prototypeOf(this.response).removeHeader.call(this.response, name);
  }

  setStatus(status: number): void {
    this.status = status;
    // Node knows the reason that goes with it.
    this.response.statusMessage = '';
  }
}

const prototypeOf = (response: ServerResponse): ServerResponse => Object.getPrototypeOf(response) as ServerResponse;

/** Whether Node takes this head. What it refuses is handed to it at once, so that its error comes where it always comes. */
export function isSendable(status: number, reason: string | undefined, headers: GivenHeaders): boolean {
  if (!(status >= 100 && status <= 999)) return false;
  if (Array.isArray(headers) && (Array.isArray(headers[0]) || headers.length % 2 === 1)) return false;
  try {
    if (reason !== undefined) validateHeaderValue('reason', reason);
    for (const [name, value] of pairsOf(headers)) {
      validateHeaderName(name);
      for (const line of [value].flat()) validateHeaderValue(name, line as string);
    }
    return true;
  } catch {
    // Node says what is wrong with it.
    return false;
  }
}

/** Puts them on the response, as `writeHead` does. */
export function setAll(response: ServerResponse, headers: GivenHeaders): void {
  const pairs = pairsOf(headers);
  if (Array.isArray(headers)) {
    for (const [name] of pairs) response.removeHeader(name);
    for (const [name, value] of pairs) response.appendHeader(name, value as string | string[]);
  } else for (const [name, value] of pairs) response.setHeader(name, value);
}

function pairsOf(headers: GivenHeaders): [string, OutgoingHttpHeader][] {
  if (!Array.isArray(headers)) return Object.entries(headers ?? {}) as [string, OutgoingHttpHeader][];
  const names = headers.filter((_, index) => index % 2 === 0);
  return names.map((name, index) => [String(name), headers[2 * index + 1]!]);
}
