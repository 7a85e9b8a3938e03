import { OutgoingMessage, type IncomingMessage, type ServerResponse } from 'node:http';
import { stateOf } from '../../request/tracker.js';
import { ResponseView } from '../response-view.js';
import { LOOKS_ENDED, override, tooLate } from '../sealed-response.js';
import { compressionOf, type RouteCompression } from '../route-compression.js';
import { type FieldValue, present } from '../rules/policy.js';

interface ExpressResponse extends ServerResponse {
  /** Not there where a server of Node's own answers. */
  readonly app?: { get(setting: string): unknown };
}

/** Those of Node that throw when it is. */
const CHANGES = ['setHeader', 'setHeaders', 'appendHeader', 'removeHeader'];

/** A plain Node response. */
export class ExpressResponseView extends ResponseView {
  private matched: RouteCompression | null = null;
  /** Whether the application had set a length when `res.send()` began; null until it does. */
  private lengthBeforeSend: boolean | null = null;
  /** As it was when the application had answered; what it sets while the body is being encoded comes too late. */
  private answered: { readonly status: number; readonly message: string } | null = null;

  constructor(
    request: IncomingMessage,
    private readonly response: ExpressResponse,
    private readonly unrouted: RouteCompression,
  ) {
    super(request, response);
  }

  /** Known once Express has matched it. */
  get route(): RouteCompression {
    this.matched ??= compressionOf(stateOf(this.response));
    return this.matched ?? this.unrouted;
  }

  /** Not where the application has switched Express's tags off. */
  override get tags(): boolean {
    return this.response.app?.get('etag') !== false;
  }

  /** `res.send()` begins: from now on the length is Express's own. */
  sends(): void {
    this.lengthBeforeSend ??= this.hasOwnLength;
  }

  override get hasOwnLength(): boolean {
    return this.lengthBeforeSend ?? super.hasOwnLength;
  }

  /**
   * While the body is being encoded the response looks ended, as it would without compression. Returns what opens it again,
   * with what the application's middleware had put there, and without what came too late.
   */
  seal(): () => void {
    const { response } = this;
    this.answered = { status: response.statusCode, message: response.statusMessage };
    const open = override(response, [
      ...LOOKS_ENDED,
      ...CHANGES.map((name) => [name, { value: tooLate, writable: true }] as const),
      ['flushHeaders', { value: () => {}, writable: true }],
    ]);
    return () => {
      open();
      response.statusCode = this.answered!.status;
      response.statusMessage = this.answered!.message;
    };
  }

  get status(): number {
    return this.answered?.status ?? this.response.statusCode;
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
