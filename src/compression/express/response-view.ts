import { OutgoingMessage, type IncomingMessage, type ServerResponse } from 'node:http';
import { stateOf } from '../../http/lifecycle.js';
import { ResponseView } from '../response-view.js';
import { SHARED_ANSWER } from '../route-compression.js';
import { type FieldValue, present } from '../rules/field-value.js';
import type { KeptResponse, SharedFlight } from '../shared-response/shared-flight.js';

interface ExpressResponse extends ServerResponse {
  /** Not there where a server of Node's own answers. */
  readonly app?: { get(setting: string): unknown };
}

/** A plain Node response. */
export class ExpressResponseView extends ResponseView {
  /** As it was when the application had answered; what it sets while the body is being encoded comes too late. */
  private answered: { readonly status: number; readonly message: string } | null = null;

  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ExpressResponse,
  ) {
    super();
  }

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
    const state = stateOf(this.request);
    return state === null ? null : SHARED_ANSWER.get(state);
  }

  get status(): number {
    return this.answered?.status ?? this.response.statusCode;
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

  protected writeStatus(status: number): void {
    this.response.statusCode = status;
    // Node knows what goes with it.
    if (this.answered !== null) this.answered = { status, message: '' };
  }

  protected write(name: string, value: string | number | readonly string[]): void {
    // Node's own: while the body is being encoded the response's refuses the application's late headers.
    OutgoingMessage.prototype.setHeader.call(this.response, name, value);
  }

  protected erase(name: string): void {
    OutgoingMessage.prototype.removeHeader.call(this.response, name);
  }
}
