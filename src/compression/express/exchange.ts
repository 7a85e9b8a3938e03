import { OutgoingMessage, type IncomingMessage, type ServerResponse } from 'node:http';
import { stateOfMessage } from '../../http/request-lifecycle.js';
import type { Exchange } from '../exchange.js';
import type { FieldValue } from '../rules/field-value.js';
import type { KeptResponse, SharedFlight } from '../shared-response/shared-route.js';

/** A plain Node response. */
export class ExpressExchange implements Exchange {
  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
  ) {}

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
    return this.response.statusCode;
  }

  set status(status: number) {
    this.response.statusCode = status;
  }

  requestHeader(name: string): string | undefined {
    return this.request.headers[name] as string | undefined;
  }

  header(name: string): FieldValue {
    return this.response.getHeader(name);
  }

  headers(): Readonly<Record<string, FieldValue>> {
    return this.response.getHeaders();
  }

  set(name: string, value: string | number | readonly string[]): void {
    // Node's own: while the body is being encoded the response's refuses the application's late headers.
    OutgoingMessage.prototype.setHeader.call(this.response, name, value);
  }

  remove(name: string): void {
    this.response.removeHeader(name);
  }
}
