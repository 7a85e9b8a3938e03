import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestState } from '../../core/request-state.js';
import { ResponseView } from '../response-view.js';
import { SHARED_ANSWER } from '../route-compression.js';
import { type FieldValue, present } from '../rules/policy.js';
import type { KeptResponse, SharedFlight } from '../shared-response/shared-flight.js';

/** The parts of Fastify 5 that are used; structural, so that no vendor's type is needed. */
export interface FastifyRequest {
  readonly raw: IncomingMessage;
  readonly routeOptions: { readonly bodyLimit: number; readonly config?: object };
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

/** A Fastify reply in `onSend`. */
export class FastifyResponseView extends ResponseView {
  readonly tags = true;

  constructor(
    private readonly request: FastifyRequest,
    private readonly reply: FastifyReply,
    private readonly state: RequestState | null,
  ) {
    super();
  }

  get method(): string {
    return this.request.raw.method ?? 'GET';
  }

  get gone(): boolean {
    return this.reply.raw.destroyed;
  }

  get shared(): SharedFlight | KeptResponse | null {
    return this.state === null ? null : SHARED_ANSWER.get(this.state);
  }

  get status(): number {
    return this.reply.statusCode;
  }

  /** Fastify counts what it sends after its hooks. */
  get hasOwnLength(): boolean {
    return this.header('content-length') !== undefined;
  }

  requestHeader(name: string): string | undefined {
    return this.request.raw.headers[name] as string | undefined;
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
