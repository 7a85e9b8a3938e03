import type { IncomingMessage, ServerResponse } from 'node:http';
import { ResponseView } from '../response-view.js';
import type { RouteCompression } from '../route-compression.js';
import { type FieldValue, present } from '../rules/policy.js';

/** The parts of Fastify 5 that are used; structural, so that no vendor's type is needed. */
export interface FastifyRequest {
  readonly raw: IncomingMessage;
  readonly routeOptions: { readonly config?: object };
}
export interface FastifyReply {
  readonly raw: ServerResponse;
  readonly statusCode: number;
  code(status: number): FastifyReply;
  header(name: string, value: unknown): FastifyReply;
  getHeader(name: string): FieldValue;
  getHeaders(): Readonly<Record<string, FieldValue>>;
  removeHeader(name: string): FastifyReply;
}

/** A Fastify reply in `onSend`. A length that is there is the application's: Fastify counts what it sends after its hooks. */
export class FastifyResponseView extends ResponseView {
  constructor(
    request: FastifyRequest,
    private readonly reply: FastifyReply,
    readonly route: RouteCompression,
  ) {
    super(request.raw, reply.raw);
  }

  get status(): number {
    return this.reply.statusCode;
  }

  header(name: string): FieldValue {
    return present(this.reply.getHeader(name));
  }

  headers(): Readonly<Record<string, FieldValue>> {
    return this.reply.getHeaders();
  }

  protected writeStatus(status: number): void {
    this.reply.code(status);
  }

  protected write(name: string, value: string | number | readonly string[]): void {
    // Fastify counts what it sends, and where trailers follow there must be no length.
    if (name === 'content-length') this.erase(name);
    else this.reply.header(name, value);
  }

  protected erase(name: string): void {
    this.reply.removeHeader(name);
    // What middleware has put on Node's response would show through.
    this.reply.raw.removeHeader(name);
  }
}
