import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestState } from '../../core/request-state.js';
import type { Exchange } from '../exchange.js';
import { type FieldValue, present } from '../rules/field-value.js';
import { symbolOf, valueOf } from './private-symbol.js';
import type { KeptResponse, SharedFlight } from '../shared-response/shared-route.js';

/** The parts of Fastify 5 that are used; structural, so that no vendor's type is needed. */
export interface FastifyRequest {
  readonly raw: IncomingMessage;
  /** Setting them adds to what the client sent, for Fastify's own hooks only. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Of the matched route. */
  readonly routeOptions: { readonly config?: object; readonly schema?: { readonly response?: unknown } };
}
export interface FastifyReply {
  readonly raw: ServerResponse;
  statusCode: number;
  code(status: number): FastifyReply;
  header(name: string, value: unknown): FastifyReply;
  getHeader(name: string): FieldValue;
  getHeaders(): Readonly<Record<string, FieldValue>>;
  removeHeader(name: string): FastifyReply;
}

/** Fastify's own name of a reply's headers. Where it is unknown, Fastify is asked for each. */
const HEADERS = 'fastify.reply.headers';
type Headers = Record<string, FieldValue>;

/** Makes the exchanges of one application. */
export class FastifyExchanges {
  private headers: symbol | undefined;
  private looked = false;

  of(request: FastifyRequest, reply: FastifyReply, state: RequestState | null): FastifyExchange {
    return new FastifyExchange(request, reply, state, this.headersOf(reply));
  }

  /**
   * The headers, by lower-case name, of a reply with none that says whether it may be encoded, but its type; null for every other.
   * Most replies are such, and need no exchange.
   */
  plainHeaders(reply: FastifyReply): Headers | null {
    const own = this.headersOf(reply);
    if (own === null || reply.raw.statusCode !== 200 || reply.raw.getHeaderNames().length > 0) return null;
    const decides =
      own['cache-control'] ?? own['content-encoding'] ?? own['content-range'] ?? own['etag'] ?? own['vary'] ?? null;
    return decides === null ? own : null;
  }

  private headersOf(reply: FastifyReply): Headers | null {
    if (!this.looked) {
      this.looked = true;
      this.headers = symbolOf(reply, HEADERS);
    }
    return this.headers === undefined ? null : ((valueOf(reply, this.headers) as Headers | undefined) ?? null);
  }
}

/** A Fastify reply in `onSend`. */
export class FastifyExchange implements Exchange {
  readonly tags = true;
  /** Headers stand on Node's response as well: middleware has put them there. */
  private readonly ofNode: boolean;

  constructor(
    private readonly request: FastifyRequest,
    private readonly reply: FastifyReply,
    private readonly state: RequestState | null,
    /** The reply's own headers, by lower-case name: each response is asked for half a dozen, and most are not there. */
    private readonly own: Headers | null,
  ) {
    this.ofNode = own === null || reply.raw.getHeaderNames().length > 0;
  }

  get method(): string {
    return this.request.raw.method ?? 'GET';
  }

  get gone(): boolean {
    return this.reply.raw.destroyed;
  }

  get shared(): SharedFlight | KeptResponse | null {
    return (this.state?.shared ?? null) as SharedFlight | KeptResponse | null;
  }

  get status(): number {
    return this.reply.statusCode;
  }

  set status(status: number) {
    this.reply.code(status);
  }

  requestHeader(name: string): string | undefined {
    return this.request.raw.headers[name] as string | undefined;
  }

  header(name: string): FieldValue {
    const value = this.own === null ? this.reply.getHeader(name) : fieldOf(this.own, name);
    return present(value === undefined && this.ofNode ? this.reply.raw.getHeader(name) : value);
  }

  headers(): Readonly<Record<string, FieldValue>> {
    return this.reply.getHeaders();
  }

  set(name: string, value: string | number | readonly string[]): void {
    // What Fastify does for a field that is no cookie, for the one that most responses get.
    if (this.own !== null && name === 'vary') this.own['vary'] = value;
    else this.reply.header(name, value);
  }

  remove(name: string): void {
    this.reply.removeHeader(name);
  }
}

/** Those that each response is asked for by their own names, so that V8 knows the place: a computed name is looked up in a table. */
function fieldOf(headers: Headers, name: string): FieldValue {
  switch (name) {
    case 'content-type':
      return headers['content-type'];
    case 'etag':
      return headers['etag'];
    case 'content-encoding':
      return headers['content-encoding'];
    case 'content-range':
      return headers['content-range'];
    case 'cache-control':
      return headers['cache-control'];
    case 'vary':
      return headers['vary'];
    default:
      return headers[name];
  }
}
