import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { pipeline, Writable, type Transform } from 'node:stream';
import type { Body } from '../cache/content-cache.js';
import type { CompressionEngine } from '../engine.js';
import { KeptResponse } from '../shared-response/shared-flight.js';
import { headersSentError, isChunk, override, writeAfterEnd } from '../sealed-response.js';
import { ExpressResponseView } from './response-view.js';

type Callback = (error?: Error | null) => void;
type End = [chunk?: unknown, encoding?: unknown, callback?: unknown];

/** The functions that every way of answering passes. */
export interface Sending {
  writeHead: (status: number, reason?: unknown, headers?: unknown) => ServerResponse;
  write: (chunk: unknown, encoding?: unknown, callback?: unknown) => boolean;
  end: (chunk?: unknown, encoding?: unknown, callback?: unknown) => ServerResponse;
}

/**
 * What stands between an application's calls and its response.
 * - `open`: nothing was sent.
 * - `waiting`: the whole body is being encoded; for the application the response has ended.
 * - `encoding`: a stream, through an encoder.
 * - `ended`: the application has ended that stream; its rest is being encoded.
 * - `passing`: what is written goes out as it is.
 */
type Phase = 'open' | 'waiting' | 'encoding' | 'ended' | 'passing';

/** Stands in front of a response's `writeHead`, `write` and `end`. */
export class HeldResponse implements Sending {
  private phase: Phase = 'open';
  private encoder: Transform | null = null;
  private unseal: (() => void) | null = null;
  /** Null: `res.send()` was given nothing; undefined: it was not called. */
  private sentBody: Body | null | undefined;
  private readonly view: ExpressResponseView;

  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly engine: CompressionEngine,
    /** What stood there before: Node's own, or those of the application's middleware. */
    readonly original: Sending,
  ) {
    this.view = new ExpressResponseView(request, response, engine.unrouted);
  }

  /** Express counts a body by itself, and drops that of HEAD, whose length and tag are those of GET's. */
  sends(body: unknown): void {
    this.view.sends();
    this.sentBody = isChunk(body) ? body : null;
  }

  /** An explicit head: what follows is treated as a stream, because its length and its end are not known yet. */
  writeHead(status: number, reason?: unknown, headers?: unknown): ServerResponse {
    if (this.phase === 'waiting') throw headersSentError();
    const { response, original } = this;
    const given = (typeof reason === 'string' ? headers : (headers ?? reason)) as GivenHeaders;
    if (this.phase !== 'open' || !isStatus(status) || isRefused(given, response)) {
      return original.writeHead.call(response, status, reason, headers);
    }
    // Before the headers, as Node does: it may refuse one of them, and the application may go on.
    response.statusCode = status;
    if (typeof reason === 'string') response.statusMessage = reason;
    setAll(response, given);
    this.openStream(() => {
      const again = this.unchanged(given);
      if (typeof reason === 'string') original.writeHead.call(response, status, reason, again);
      else original.writeHead.call(response, status, again);
    });
    return response;
  }

  /** Given once more: they outrank what middleware sets within a `writeHead` of its own, as with Node. */
  private unchanged(given: GivenHeaders): OutgoingHttpHeaders | undefined {
    if (given === undefined || given === null) return undefined;
    const unchanged = pairsOf(given).filter(([name]) => !this.view.hasChanged(name.toLowerCase()));
    return Object.fromEntries(unchanged.map(([name]) => [name, this.response.getHeader(name)]));
  }

  write(chunk: unknown, encoding?: unknown, callback?: unknown): boolean {
    const { original, response } = this;
    // Node refuses what is no chunk, before anything is sent.
    if (this.phase === 'open' && isChunk(chunk)) {
      // At once, as without an encoder: other middleware, `compression` for one, waits for the head before it lets anybody
      // hear of `drain`, and an encoder may want more before it gives its first byte.
      this.openStream(() => {
        // By the response's own, which middleware behind this one may have replaced.
        if (this.phase === 'encoding') response.writeHead(response.statusCode);
      });
    }
    if (this.phase === 'waiting' || this.phase === 'ended') return writeAfterEnd(response, encoding, callback);
    if (this.phase === 'encoding') return (this.encoder!.write as Sending['write'])(chunk, encoding, callback);
    return original.write.call(response, chunk, encoding, callback);
  }

  end(chunk?: unknown, encoding?: unknown, callback?: unknown): ServerResponse {
    const { response } = this;
    if (this.phase === 'waiting' || this.phase === 'ended') {
      const done = callbackOf(chunk, encoding, callback);
      // Node lets a second `end()` without a chunk pass.
      if (isChunk(chunk)) writeAfterEnd(response, done);
      else if (done !== undefined) response.once('finish', done);
    } else if (this.phase === 'encoding') this.endStream(chunk, encoding, callback);
    else if (this.phase === 'passing' || this.passes(chunk)) this.deliver(chunk, encoding, callback);
    else {
      const body = this.bodyOf(chunk, encoding);
      if (body === null) this.endWithout(callbackOf(chunk, encoding, callback));
      else this.endWith(body, chunk, encoding, callback);
    }
    return response;
  }

  private passes(chunk: unknown): boolean {
    const { response, view } = this;
    if (typeof chunk !== 'function' && chunk !== undefined && chunk !== null && !isChunk(chunk)) return true;
    // Node says what is wrong with it, to who can still answer otherwise.
    if (!isStatus(response.statusCode) || !isReason(response.statusMessage)) return true;
    if (this.request.method === 'HEAD' || !isChunk(chunk)) return false;
    return chunk.length > 0 && this.engine.passes(view, chunk);
  }

  private bodyOf(chunk: unknown, encoding: unknown): Body | null {
    const isHead = this.request.method === 'HEAD';
    // Express itself has found that the client has it.
    if (isHead && this.response.statusCode === 304) return null;
    const body = isHead ? (this.sentBody ?? chunk) : chunk;
    if (!isChunk(body) || (body.length === 0 && !isHead)) return null;
    // A kept answer stands for itself, encodings included: its text need not become bytes again for each caller.
    if (typeof body !== 'string' || this.view.shared instanceof KeptResponse) return body;
    return Buffer.from(body, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8');
  }

  private endWith(body: Body, ...given: End): void {
    const { view } = this;
    const isHead = this.request.method === 'HEAD';
    this.phase = 'waiting';
    this.engine.send(view, body, (sent) => {
      // As it was given where it is: Node writes the head before a text in another encoding than before bytes.
      if (sent === body && !isHead) this.deliver(...given);
      else this.deliver(isHead ? undefined : (sent ?? undefined), undefined, callbackOf(...given));
    });
    if (this.phase === 'waiting') this.unseal = view.seal();
  }

  private endWithout(done: Callback | undefined): void {
    const { engine, view } = this;
    const deliver = (): void => this.deliver(undefined, undefined, done);
    const isStream = this.request.method === 'HEAD' && this.response.statusCode !== 304 && this.sentBody === undefined;
    if (!isStream) return engine.sendNothing(view, deliver);
    // HEAD of a stream: the headers of its GET.
    engine.openStream(view);
    deliver();
  }

  /** Ends the response; Node may refuse that, and something else be sent instead. */
  private deliver(...given: End): void {
    const { response, unseal, view } = this;
    const before = this.phase === 'waiting' ? 'open' : this.phase;
    unseal?.();
    this.phase = 'passing';
    try {
      this.original.end.apply(response, given);
    } catch (error) {
      this.phase = before;
      if (before === 'open') view.undo();
      if (unseal === null) throw error;
      // The caller of `end()` is long gone: tell the client by ending the connection.
      this.engine.failed(error);
      response.destroy();
    }
  }

  /** Chooses a coding, and sends the head; where Node refuses it nothing has changed. */
  private openStream(sendHead: () => void): void {
    const { engine, response, view } = this;
    const encoder = isReason(response.statusMessage) ? engine.openStream(view) : null;
    this.phase = encoder === null ? 'passing' : 'encoding';
    try {
      sendHead();
    } catch (error) {
      this.phase = 'open';
      view.undo();
      encoder?.destroy();
      throw error;
    }
    if (encoder !== null) this.encode(encoder);
  }

  private encode(encoder: Transform): void {
    const { engine, original, response } = this;
    this.encoder = encoder;
    // Whoever waits for the response to drain waits for the encoder: that Node has sent what the encoder gave tells nothing.
    const emit = response.emit.bind(response) as (...event: unknown[]) => boolean;
    // Not `writableLength` as well: Node 26 reads it to see whether it owes a `drain`.
    const restore = override(response, [
      ['writableNeedDrain', { get: () => encoder.writableNeedDrain }],
      ['writableEnded', { get: () => this.phase === 'ended' }],
    ]);
    let drained = (): void => {};
    response.emit = (...event: unknown[]): boolean => {
      if (event[0] !== 'drain') return emit(...event);
      drained();
      return true;
    };
    encoder.on('drain', () => this.phase === 'encoding' && emit('drain'));
    const sent = new Writable({
      write: (chunk, _encoding, done) => {
        drained = () => {};
        // Not by a callback: middleware that has replaced `write` may not pass it on.
        const more: unknown = original.write.call(response, chunk);
        if (more === false) drained = done;
        else done();
      },
    });
    response.once('close', () => encoder.destroy());
    pipeline(encoder, sent, (error) => {
      if (response.destroyed) return;
      if (error) {
        engine.failed(error);
        response.destroy();
      } else {
        restore();
        this.phase = 'passing';
        original.end.call(response);
      }
    });
  }

  private endStream(chunk: unknown, encoding: unknown, callback: unknown): void {
    const { response } = this;
    const done = callbackOf(chunk, encoding, callback);
    // What is no chunk is refused by the encoder, as by Node.
    const nothing = chunk === undefined || chunk === null || typeof chunk === 'function';
    const given = nothing ? [] : [chunk, typeof encoding === 'string' ? encoding : undefined];
    (this.encoder!.end as (...parameters: unknown[]) => unknown)(...given);
    if (done !== undefined) response.once('finish', done);
    this.phase = 'ended';
  }
}

const callbackOf = (...given: unknown[]): Callback | undefined =>
  given.find((each) => typeof each === 'function') as Callback | undefined;

const isStatus = (status: number): boolean => status >= 100 && status <= 999;

/** What a reason phrase may hold: RFC 9112, section 4. */
const isReason = (reason: string | undefined): boolean =>
  reason === undefined || /^[\t\x20-\x7e\x80-\xff]*$/.test(reason);

/** `writeHead`'s headers: an object, a flat list of names and values, or a list of pairs. */
type GivenHeaders = OutgoingHttpHeaders | OutgoingHttpHeader[] | null | undefined;

/** Lists that Node refuses: with a name that has no value, and of pairs once there are headers. */
const isRefused = (given: GivenHeaders, response: ServerResponse): boolean =>
  Array.isArray(given) && (Array.isArray(given[0]) ? response.getHeaderNames().length > 0 : given.length % 2 === 1);

export function setAll(response: ServerResponse, headers: GivenHeaders): void {
  const pairs = pairsOf(headers);
  if (Array.isArray(headers)) {
    for (const [name] of pairs) response.removeHeader(name);
    for (const [name, value] of pairs) response.appendHeader(name, value as string | string[]);
  } else for (const [name, value] of pairs) response.setHeader(name, value);
}

function pairsOf(headers: GivenHeaders): [string, OutgoingHttpHeader][] {
  if (!Array.isArray(headers)) return Object.entries(headers ?? {}) as [string, OutgoingHttpHeader][];
  if (Array.isArray(headers[0])) return headers as unknown as [string, OutgoingHttpHeader][];
  const names = headers.filter((_, index) => index % 2 === 0 && index + 1 < headers.length);
  return names.map((name, index) => [String(name), headers[2 * index + 1]!]);
}
