import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { RequestState } from '../request/request-state.js';
import { compressionOf, type RouteCompression } from './route-compression.js';
import { present, type FieldValue, type ResponseHead } from './rules/policy.js';
import { KeptResponse, type SharedFlight } from './shared-response/shared-flight.js';

interface AnyResponse extends ServerResponse {
  /** Express's application; undefined on a plain Node server. */
  readonly app?: { get?(setting: string): unknown };
  readonly stream?: { destroyed?: boolean } | null;
}

/** `writeHead`'s headers: an object, a flat list of names and values, or a list of pairs. */
export type GivenHeaders = OutgoingHttpHeaders | OutgoingHttpHeader[] | null | undefined;

/** The head of a response that the application has given, and Node has not sent. */
export class HeldHead implements ResponseHead {
  /** The status when the application had answered: a change while the body is being encoded comes too late. */
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
    // The handler has answered: the client's conditional headers become visible again.
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

  /** A kept answer replaces the body of this response. */
  get isKept(): boolean {
    return this.shared instanceof KeptResponse && this.status === 200;
  }

  /** Whether a response without a tag may get one: false where Express's tags are switched off. */
  get tags(): boolean {
    return this.response.app?.get?.('etag') !== false;
  }

  /** The declared length of the body, bytes; null without one. */
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

  /** Calls the prototype's function: the response's own refuses late headers. */
  set(name: string, value: Exclude<FieldValue, undefined>): void {
    findPrototype(this.response).setHeader.call(this.response, name, value);
  }

  remove(name: string): void {
    findPrototype(this.response).removeHeader.call(this.response, name);
  }

  setStatus(status: number): void {
    this.status = status;
    // Node sets the reason phrase of the new status.
    this.response.statusMessage = '';
  }
}

const findPrototype = (response: ServerResponse): ServerResponse => Object.getPrototypeOf(response) as ServerResponse;

/** Whether Node accepts this head. A refused head goes to Node at once, which throws its error at the usual place. */
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
    // Node throws the error when it gets the head.
    return false;
  }
}

/** Sets the headers on the response, as `writeHead` does. */
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
