import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CompressionEngine } from '../engine.js';
import { HeldResponse, type Sending } from './held-response.js';
import type { RouteCompression } from '../route-compression.js';

const HELD: unique symbol = Symbol('perf:compression');
interface HeldServerResponse extends ServerResponse {
  [HELD]?: HeldResponse;
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
    /** What Express gives to every response of the application. */
    prototype: Sending,
  ) {
    const original: Sending = { writeHead: prototype.writeHead, write: prototype.write, end: prototype.end };
    this.original = original;
    prototype.writeHead = function (this: HeldServerResponse, status, reason, headers) {
      const held = this[HELD];
      if (held === undefined || held.wrapped) return original.writeHead.call(this, status, reason, headers);
      return held.writeHead(status, reason, headers);
    };
    prototype.write = function (this: HeldServerResponse, chunk, encoding, callback) {
      const held = this[HELD];
      if (held === undefined || held.wrapped) return original.write.call(this, chunk, encoding, callback);
      return held.write(chunk, encoding, callback);
    };
    prototype.end = function (this: HeldServerResponse, chunk, encoding, callback) {
      const held = this[HELD];
      if (held === undefined || held.wrapped) return original.end.call(this, chunk, encoding, callback);
      return held.end(chunk, encoding, callback);
    };
  }

  hold(request: IncomingMessage, response: HeldServerResponse): void {
    const wrapped =
      Object.hasOwn(response, 'end') || Object.hasOwn(response, 'write') || Object.hasOwn(response, 'writeHead');
    if (wrapped) this.holdWrapped(request, response);
    else response[HELD] = new HeldResponse(request, response, this.engine, this.unrouted, this.original, false);
    if (request.method === 'HEAD' && response.send !== undefined) keepHeadBody(response, response.send.bind(response));
  }

  private holdWrapped(request: IncomingMessage, response: HeldServerResponse): void {
    const { writeHead, write, end } = response as unknown as Sending;
    const original: Sending = { writeHead, write, end };
    const held = new HeldResponse(request, response, this.engine, this.unrouted, original, true);
    response[HELD] = held;
    const own: Sending = {
      writeHead: (status, reason, headers) => held.writeHead(status, reason, headers),
      write: (chunk, encoding, callback) => held.write(chunk, encoding, callback),
      end: (chunk, encoding, callback) => held.end(chunk, encoding, callback),
    };
    Object.assign(response, own);
  }
}

/** Express drops the body of a HEAD before it reaches `end`, but its length and tag are those of GET's representation. */
function keepHeadBody(response: HeldServerResponse, send: (body?: unknown) => unknown): void {
  response.send = (body) => {
    if (typeof body === 'string' || body instanceof Uint8Array) response[HELD]!.headBody = body;
    return send(body);
  };
}
