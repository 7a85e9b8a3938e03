import { OutgoingMessage, type IncomingMessage, type ServerResponse } from 'node:http';
import { stateOfMessage } from '../../http/request-lifecycle.js';
import type { Exchange } from '../exchange.js';
import { type FieldValue, present } from '../rules/field-value.js';
import type { KeptResponse, SharedFlight } from '../shared-response/shared-route.js';

interface ExpressResponse extends ServerResponse {
  /** Not there where a server of Node's own answers. */
  readonly app?: { get(setting: string): unknown };
}

/** A plain Node response. */
export class ExpressExchange implements Exchange {
  /** As it was when the application had answered; what it sets while the body is being encoded comes too late. */
  private answered: { status: number; readonly message: string } | null = null;

  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ExpressResponse,
  ) {}

  /** Not where the application has switched Express's tags off. */
  get tags(): boolean {
    const { app } = this.response;
    return app === undefined || typeof app.get('etag fn') === 'function';
  }

  /** The application has answered, and its body is not sent yet. */
  hold(): void {
    const { statusCode: status, statusMessage: message } = this.response;
    this.answered = { status, message };
  }

  /** Undoes what came too late. */
  release(): void {
    if (this.answered === null) return;
    this.response.statusCode = this.answered.status;
    this.response.statusMessage = this.answered.message;
  }

  get method(): string {
    return this.request.method ?? 'GET';
  }

  get gone(): boolean {
    return this.response.destroyed;
  }

  get shared(): SharedFlight | KeptResponse | null {
    return (stateOfMessage(this.request)?.shared ?? null) as SharedFlight | KeptResponse | null;
  }

  get status(): number {
    return this.answered?.status ?? this.response.statusCode;
  }

  set status(status: number) {
    this.response.statusCode = status;
    // Node knows what goes with it.
    if (this.answered !== null) this.answered = { status, message: '' };
  }

  requestHeader(name: string): string | undefined {
    return this.request.headers[name] as string | undefined;
  }

  header(name: string): FieldValue {
    return present(this.response.getHeader(name));
  }

  headers(): Readonly<Record<string, FieldValue>> {
    return this.response.getHeaders();
  }

  set(name: string, value: string | number | readonly string[]): void {
    // Node's own: while the body is being encoded the response's refuses the application's late headers.
    OutgoingMessage.prototype.setHeader.call(this.response, name, value);
  }

  remove(name: string): void {
    OutgoingMessage.prototype.removeHeader.call(this.response, name);
  }
}
