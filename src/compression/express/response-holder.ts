import type { IncomingMessage, ServerResponse } from 'node:http';
import { attach } from '../../core/attachment.js';
import { stateOf } from '../../http/lifecycle.js';
import type { RequestEntry } from '../../http/platform.js';
import type { CompressionEngine } from '../engine.js';
import { HeldResponse, type Sending } from './held-response.js';
import { RouteCompression } from '../route-compression.js';

const HELD = attach<HeldResponse>('request');
interface ExpressResponse extends ServerResponse {
  send?: (body?: unknown) => unknown;
}

/**
 * Puts {@link HeldResponse}s in front of the responses of one Express application. Its functions stand on the prototype of
 * those responses, once, so that no request pays for putting them there. A response whose functions an earlier middleware
 * has replaced gets its own, in front of those.
 */
export class ResponseHolder {
  private readonly original: Sending;

  constructor(
    private readonly engine: CompressionEngine,
    private readonly unrouted: RouteCompression,
    private readonly requests: RequestEntry,
    /** What Express gives to every response of the application. */
    prototype: Sending,
  ) {
    const original = sendingBefore(prototype);
    this.original = original;
    // Two applications may serve one Express: each has functions there, for the responses that it holds.
    const heldBy = (response: ServerResponse): HeldResponse | null => {
      const state = stateOf(response);
      const held = state === null ? null : HELD.get(state);
      return held?.original === original ? held : null;
    };
    prototype.writeHead = function (this: ServerResponse, status, reason, headers) {
      const held = heldBy(this);
      return held === null
        ? original.writeHead.call(this, status, reason, headers)
        : held.writeHead(status, reason, headers);
    };
    prototype.write = function (this: ServerResponse, chunk, encoding, callback) {
      const held = heldBy(this);
      return held === null
        ? original.write.call(this, chunk, encoding, callback)
        : held.write(chunk, encoding, callback);
    };
    prototype.end = function (this: ServerResponse, chunk, encoding, callback) {
      const held = heldBy(this);
      return held === null ? original.end.call(this, chunk, encoding, callback) : held.end(chunk, encoding, callback);
    };
  }

  hold(request: IncomingMessage, response: ExpressResponse): void {
    // Of this application, also where another one on the same Express has seen the request since.
    const state = this.requests.start(request, response);
    const wrapped =
      Object.hasOwn(response, 'end') || Object.hasOwn(response, 'write') || Object.hasOwn(response, 'writeHead');
    const held = wrapped ? this.holdWrapped(request, response) : this.held(request, response, this.original);
    HELD.set(state, held);
    const { send } = response;
    if (request.method !== 'HEAD' || send === undefined) return;
    // Express drops the body of a HEAD before it reaches `end`, but its length and tag are those of GET's representation.
    response.send = (body) => {
      if (typeof body === 'string' || body instanceof Uint8Array) held.headBody = body;
      return send.call(response, body);
    };
  }

  private held(request: IncomingMessage, response: ServerResponse, original: Sending): HeldResponse {
    return new HeldResponse(request, response, this.engine, this.unrouted, original);
  }

  private holdWrapped(request: IncomingMessage, response: ServerResponse): HeldResponse {
    const { writeHead, write, end } = response as unknown as Sending;
    const held = this.held(request, response, { writeHead, write, end });
    const own: Sending = {
      writeHead: (status, reason, headers) => held.writeHead(status, reason, headers),
      write: (chunk, encoding, callback) => held.write(chunk, encoding, callback),
      end: (chunk, encoding, callback) => held.end(chunk, encoding, callback),
    };
    Object.assign(response, own);
    return held;
  }
}

/** What is there now; of Node's own always the newest, since an agent may patch it later. */
function sendingBefore(prototype: Sending): Sending {
  const own = Object.getOwnPropertyDescriptors(prototype) as Partial<Record<keyof Sending, PropertyDescriptor>>;
  const inherited = Object.getPrototypeOf(prototype) as Sending;
  return {
    get writeHead() {
      return (own.writeHead?.value as Sending['writeHead'] | undefined) ?? inherited.writeHead;
    },
    get write() {
      return (own.write?.value as Sending['write'] | undefined) ?? inherited.write;
    },
    get end() {
      return (own.end?.value as Sending['end'] | undefined) ?? inherited.end;
    },
  };
}

/** The part of Express 5 that is used. */
export interface ExpressApplication {
  /** The prototype that the application gives to each of its responses. */
  readonly response: object;
  use(middleware: (request: IncomingMessage, response: ServerResponse, next: () => void) => void): unknown;
}

/**
 * Installs compression on an Express application, before its routes exist. Called from `configure()`, the middleware stands behind
 * those of main.ts: of two compressors the inner one encodes, and the outer one sees that it is done.
 */
export function compressOnExpress(
  express: ExpressApplication,
  engine: CompressionEngine,
  requests: RequestEntry,
): void {
  const holder = new ResponseHolder(engine, new RouteCompression(false, null), requests, express.response as Sending);
  express.use((request, response, next) => {
    holder.hold(request, response);
    next();
  });
}
