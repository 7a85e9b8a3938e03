import type { IncomingMessage, ServerResponse } from 'node:http';
import { stateOf } from '../../http/request-lifecycle.js';
import type { Exchange } from '../exchange.js';
import type { FieldValue } from '../rules/field-value.js';
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

/** A Fastify reply in `onSend`. */
export class FastifyExchange implements Exchange {
  constructor(
    private readonly request: FastifyRequest,
    private readonly reply: FastifyReply,
  ) {}

  get method(): string {
    return this.request.raw.method ?? 'GET';
  }

  get gone(): boolean {
    return this.reply.raw.destroyed;
  }

  get shared(): SharedFlight | KeptResponse | null {
    return (stateOf(this.reply.raw)?.shared ?? null) as SharedFlight | KeptResponse | null;
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
    return this.reply.getHeader(name);
  }

  headers(): Readonly<Record<string, FieldValue>> {
    return this.reply.getHeaders();
  }

  set(name: string, value: string | number | readonly string[]): void {
    this.reply.header(name, value);
  }

  remove(name: string): void {
    this.reply.removeHeader(name);
  }
}
