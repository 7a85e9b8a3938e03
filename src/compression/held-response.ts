import { STATUS_CODES, ServerResponse, type IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import type { RequestState } from '../request/request-state.js';
import type { Body } from './cache/content-cache.js';
import { byteLength, bytesOf, callbackOf, isChunk, mayEnd, textOf, type End, type Sending } from './chunk.js';
import { sendEncoded } from './encoded-stream.js';
import type { CompressionEngine } from './engine.js';
import { HeldHead, isSendable, setAll, type GivenHeaders } from './held-head.js';
import { SendingBelow } from './sending-below.js';
import { lookEnded, lookHeaded, tooLate, writeAfterEnd } from './late.js';

/**
 * States of a response between the application's calls and Node.
 * - `open`: nothing was given.
 * - `headed`: the head was given; whether a stream follows is not known yet.
 * - `waiting`: the whole body is being encoded; for the application the response has ended.
 * - `encoding`: a stream, through an encoder.
 * - `ended`: the application has ended that stream; its rest is being encoded.
 * - `passing`: what is written goes out as it is.
 */
type Phase = 'open' | 'headed' | 'waiting' | 'encoding' | 'ended' | 'passing';

/**
 * Replaces Node's own functions of a response, from the server's `request` event on: the application's wrappers of them see the
 * plain body and the head that it has set.
 */
export class HeldResponse {
  private phase: Phase = 'open';
  private known: HeldHead | null = null;
  private encoder: Transform | null = null;
  private unseal: (() => void) | null = null;
  /** The application has not given its head by `writeHead`. */
  private isImplied = false;
  /** Length of a whole body whose head the application has not given itself, bytes: Node would count it. */
  private wholeLength: number | null = null;
  /** The reason phrase, where the application has given one with its head. */
  private reason: readonly string[] = [];
  /** Nearly all of a body whose length is in the head: its end follows. */
  private kept: End | null = null;
  private readonly original: Sending;

  constructor(
    private readonly state: RequestState,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly engine: CompressionEngine,
    private readonly ifNoneMatch: string | undefined,
  ) {
    this.original = new SendingBelow(response);
  }

  private get head(): HeldHead {
    const { state, request, response, engine } = this;
    return (this.known ??= new HeldHead(state, request, response, engine.unrouted, this.ifNoneMatch));
  }

  private get isHead(): boolean {
    return this.request.method === 'HEAD';
  }

  writeHead(given: unknown[]): ServerResponse {
    const { phase, response, original } = this;
    if (phase !== 'open') return phase === 'passing' ? original.writeHead.apply(response, given) : tooLate();
    const status = Number(given[0]) | 0;
    const [, second, third] = given;
    const headers = (typeof second === 'string' ? third : (third ?? second)) as GivenHeaders;
    if (this.passesHead(status, headers)) return this.passHead(given);
    const reason = typeof second === 'string' ? second : response.statusMessage || STATUS_CODES[status];
    if (!isSendable(status, reason, headers)) return this.passHead(given);
    response.statusMessage = reason ?? 'unknown';
    response.statusCode = status;
    setAll(response, headers);
    this.known = null;
    this.reason = typeof second === 'string' ? [second] : [];
    if (this.engine.leaves(this.head)) return this.passHead([status, ...this.reason]);
    this.phase = 'headed';
    this.unseal = lookHeaded(response);
    return response;
  }

  /** Whether the head is of the most common form, with the length of a small body, and goes out at once. */
  private passesHead(status: number, headers: GivenHeaders): boolean {
    if (headers === null || headers === undefined || Array.isArray(headers)) return false;
    const length = headers['content-length'];
    return length !== undefined && this.engine.passesSmall(this.state, status, Number(length));
  }

  private passHead(given: unknown[]): ServerResponse {
    const { response, original } = this;
    this.addLength(response.statusCode);
    this.phase = 'passing';
    try {
      return original.writeHead.apply(response, given);
    } catch (error) {
      // Node may refuse it, and something else be sent instead.
      this.phase = 'open';
      throw error;
    }
  }

  /** Node counts a whole body while it writes the head; here the head is written before. */
  private addLength(status: number): void {
    const { response, wholeLength } = this;
    if (wholeLength === null || this.isHead || status === 204 || status === 304) return;
    if (['content-length', 'transfer-encoding', 'trailer'].some((name) => response.hasHeader(name))) return;
    this.head.set('Content-Length', wholeLength);
  }

  /** Calls the application's wrapper of `writeHead`, if there is one, as Node does. */
  private implyHead(wholeLength: number | null): Phase {
    this.isImplied = true;
    this.wholeLength = wholeLength;
    try {
      this.response.writeHead(this.response.statusCode);
    } finally {
      if (this.phase === 'open') {
        this.wholeLength = null;
        this.isImplied = false;
      }
    }
    return this.phase;
  }

  write(chunk: unknown, encoding: unknown, callback: unknown): boolean {
    const { original, response } = this;
    if (this.phase === 'passing') return original.write.call(response, chunk, encoding, callback);
    // Node refuses what is no chunk, before anything is sent.
    if (this.phase === 'open' && isChunk(chunk)) this.implyHead(null);
    if (this.phase === 'headed' && isChunk(chunk)) {
      if (this.kept === null && this.keeps([chunk, encoding, callback])) return true;
      this.openStream();
    }
    if (this.phase === 'waiting' || this.phase === 'ended') return writeAfterEnd(response, encoding, callback);
    if (this.phase === 'encoding') return (this.encoder!.write as Sending['write'])(chunk, encoding, callback);
    return original.write.call(response, chunk, encoding, callback);
  }

  /**
   * Keeps a body whose length is in the head until its end: Fastify before 5.12 writes a body and ends at once, behind a head of its own,
   * and express-session sends the last byte when it has stored the session. All else is a stream.
   */
  private keeps(given: End): boolean {
    const { length } = this.head;
    if (length === null || this.isHead) return false;
    const missing = length - byteLength(given[0] as Body, given[1]);
    if (missing !== 1 && (missing !== 0 || this.isImplied)) return false;
    this.kept = given;
    if (missing === 0) process.nextTick(() => this.kept === given && this.openStream());
    return true;
  }

  flushHeaders(): void {
    if (this.phase === 'open') this.implyHead(null);
    if (this.phase === 'headed') this.openStream();
    if (this.phase !== 'waiting') this.original.flushHeaders.call(this.response);
  }

  end(chunk: unknown, encoding: unknown, callback: unknown): ServerResponse {
    const { response, original } = this;
    if (this.phase === 'passing') return original.end.call(response, chunk, encoding, callback);
    const given: End = [chunk, encoding, callback];
    if (this.phase === 'open' && this.passesSmall(chunk, encoding)) this.pass(given);
    else if (this.phase === 'waiting' || this.phase === 'ended') {
      const done = callbackOf(...given);
      // Node lets a second `end()` without a chunk pass.
      if (isChunk(chunk)) writeAfterEnd(response, done);
      else if (done !== undefined) response.once('finish', done);
    } else if (this.phase === 'encoding') this.endStream(chunk, encoding, callback);
    else if (!mayEnd(chunk)) this.pass(given);
    else this.endWhole(given);
    return response;
  }

  private passesSmall(chunk: unknown, encoding: unknown): boolean {
    if (this.isHead || !mayEnd(chunk)) return false;
    const length = isChunk(chunk) ? byteLength(chunk, encoding) : 0;
    return this.engine.passesSmall(this.state, this.response.statusCode, length);
  }

  private endWhole(given: End): void {
    const { engine, kept } = this;
    const [chunk, encoding] = given;
    const length = isChunk(chunk) ? byteLength(chunk, encoding) : 0;
    if (this.phase === 'open') {
      if (this.implyHead(length) !== 'headed') return this.pass(given);
    }
    if (kept !== null) return this.endKept(kept, given, length);
    if (this.isHead && !this.head.isKept) {
      engine.sendHead(this.head, isChunk(chunk) ? textOf(chunk, encoding) : null);
      this.deliver(undefined, undefined, callbackOf(...given));
    } else if (!this.head.isKept && length === 0) engine.sendNothing(this.head, () => this.deliver(...given));
    else this.endWith(isChunk(chunk) ? textOf(chunk, encoding) : '', given);
  }

  private endKept(kept: End, given: End, length: number): void {
    const written = callbackOf(...kept);
    if (written !== undefined) this.response.once('finish', () => written());
    this.kept = null;
    if (length === 0) return this.endWhole([kept[0], kept[1], callbackOf(...given)]);
    const bytes = [kept, given].map(([part, encoding]) => bytesOf(part as Body, encoding));
    this.endWith(Buffer.concat(bytes), [Buffer.concat(bytes), callbackOf(...given)]);
  }

  private endWith(body: Body, given: End): void {
    const { engine, head, response } = this;
    this.phase = 'waiting';
    engine.send(head, body, (sent) => {
      // An unchanged body goes out as it was given: Node writes the head before a text in another encoding than before bytes.
      if (sent === body) this.deliver(...given);
      else this.deliver(sent ?? undefined, undefined, callbackOf(...given));
    });
    if (this.isWaiting()) {
      this.unseal?.();
      this.unseal = lookEnded(response);
    }
  }

  private isWaiting(): boolean {
    return this.phase === 'waiting';
  }

  private pass(given: End): void {
    const { phase } = this;
    this.phase = 'passing';
    try {
      this.original.end.apply(this.response, given);
    } catch (error) {
      this.phase = phase;
      throw error;
    }
  }

  /** Sends the head, and what is left of the body. */
  private deliver(...given: End): void {
    const { response, original } = this;
    try {
      this.sendHead();
      // Over HTTP/2 Node's `end()` calls the response's `write()`, and with it the application's.
      if (!(response instanceof ServerResponse)) (response as unknown as Sending).write = original.write;
      if (this.isHead) original.end.call(response, callbackOf(...given));
      else original.end.apply(response, given);
    } catch (error) {
      // The caller of `end()` may be long gone: the end of its connection shows the client the failure.
      this.engine.failed(error);
      response.destroy();
    }
  }

  private sendHead(): void {
    const { response, original, head } = this;
    this.unseal?.();
    this.unseal = null;
    this.addLength(head.status);
    this.phase = 'passing';
    original.writeHead.call(response, head.status, ...(head.status === response.statusCode ? this.reason : []));
  }

  /** Chooses a coding, and sends the head. */
  private openStream(): void {
    const { engine, head, kept } = this;
    const encoder = engine.openStream(head);
    this.sendHead();
    if (encoder !== null) {
      this.phase = 'encoding';
      this.encode(encoder);
    }
    this.kept = null;
    if (kept !== null) this.write(kept[0], kept[1], kept[2]);
  }

  private encode(encoder: Transform): void {
    const { engine, original, response } = this;
    this.encoder = encoder;
    const isEnded = (): boolean => this.phase === 'ended';
    sendEncoded({ response, encoder, write: original.write, isEnded }, (error) => {
      if (response.destroyed) return;
      if (error) {
        engine.failed(error);
        response.destroy();
      } else {
        this.phase = 'passing';
        original.end.call(response);
      }
    });
  }

  private endStream(...given: End): void {
    const [chunk, encoding] = given;
    const done = callbackOf(...given);
    // The encoder refuses an invalid chunk, as Node does.
    const nothing = chunk === undefined || chunk === null || typeof chunk === 'function';
    const parameters = nothing ? [] : [chunk, typeof encoding === 'string' ? encoding : undefined];
    (this.encoder!.end as (...parameters: unknown[]) => unknown)(...parameters);
    if (done !== undefined) this.response.once('finish', done);
    this.phase = 'ended';
  }
}
