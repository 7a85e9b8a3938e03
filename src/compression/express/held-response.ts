import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Transform } from 'node:stream';
import { stateOfMessage } from '../../http/request-lifecycle.js';
import type { Body } from '../cache/cached-body.js';
import { compressStream } from '../codec/codec.js';
import type { CompressionEngine } from '../engine.js';
import { ExpressExchange } from './exchange.js';
import { compressionOf, type RouteCompression } from '../route-compression.js';
import { KeptResponse } from '../shared-response/shared-route.js';
import { headersSentError, seal } from './sealed-response.js';
import { setAll, type GivenHeaders } from './write-head.js';

type Callback = (error?: Error | null) => void;

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
 * - `passing`: what is written goes out as it is.
 */
type Phase = 'open' | 'waiting' | 'encoding' | 'passing';

/** Stands in front of a response's `writeHead`, `write` and `end`. */
export class HeldResponse implements Sending {
  private phase: Phase = 'open';
  private encoder: Transform | null = null;
  private callback: Callback | undefined;
  private unseal: (() => void) | null = null;
  /** The body that Express drops when it answers HEAD. */
  headBody: Body | null = null;
  private readonly exchange: ExpressExchange;

  constructor(
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly engine: CompressionEngine,
    private readonly unrouted: RouteCompression,
    /** What stood there before: Node's own, or those of the application's middleware. */
    private readonly original: Sending,
    /** They were the response's own, so that those in front of them must be, too. */
    readonly wrapped: boolean,
  ) {
    this.exchange = new ExpressExchange(request, response);
  }

  /** An explicit head: what follows is treated as a stream, because its length and its end are not known yet. */
  writeHead(status: number, reason?: unknown, headers?: unknown): ServerResponse {
    if (this.phase === 'waiting') throw headersSentError();
    if (this.phase === 'open') {
      const given = typeof reason === 'string' ? headers : (headers ?? reason);
      setAll(this.response, given as GivenHeaders | undefined);
      this.response.statusCode = status;
      this.openStream();
      return typeof reason === 'string'
        ? this.original.writeHead.call(this.response, status, reason)
        : this.original.writeHead.call(this.response, status);
    }
    return this.original.writeHead.call(this.response, status, reason, headers);
  }

  write(chunk: unknown, encoding?: unknown, callback?: unknown): boolean {
    if (this.phase === 'open') {
      this.openStream();
      // At once, as without an encoder: other middleware, `compression` for one, waits for the head before it lets anybody
      // hear of `drain`, and an encoder may want more before it gives its first byte.
      if (this.encoder !== null) this.original.writeHead.call(this.response, this.response.statusCode);
    }
    if (this.phase === 'waiting') return refuse(encoding, callback);
    if (this.phase === 'encoding') return (this.encoder!.write as Sending['write'])(chunk, encoding, callback);
    return this.original.write.call(this.response, chunk, encoding, callback);
  }

  end(chunk?: unknown, encoding?: unknown, callback?: unknown): ServerResponse {
    if (this.phase === 'passing') return this.original.end.call(this.response, chunk, encoding, callback);
    if (this.phase === 'encoding') {
      (this.encoder!.end as (...given: unknown[]) => unknown)(chunk, encoding, callback);
      return this.response;
    }
    if (this.phase === 'waiting') {
      refuse(chunk, encoding, callback);
      return this.response;
    }
    if (this.passes(chunk)) {
      this.phase = 'passing';
      return this.original.end.call(this.response, chunk, encoding, callback);
    }
    this.callback = [chunk, encoding, callback].find((given) => typeof given === 'function') as Callback | undefined;
    const body = this.bodyOf(chunk, encoding);
    if (body === null) this.endWithout();
    else this.endWith(body);
    return this.response;
  }

  private passes(chunk: unknown): boolean {
    if (this.request.method === 'HEAD' || (typeof chunk !== 'string' && !(chunk instanceof Uint8Array))) return false;
    return chunk.length > 0 && this.engine.passes(this.exchange, chunk, this.route());
  }

  private bodyOf(chunk: unknown, encoding: unknown): Body | null {
    if (this.request.method === 'HEAD') {
      const body = this.headBody;
      return typeof body === 'string' ? Buffer.from(body) : body;
    }
    if (chunk instanceof Uint8Array) return chunk.byteLength === 0 ? null : chunk;
    if (typeof chunk !== 'string' || chunk === '') return null;
    // A kept answer stands for itself, encodings included: its text need not become bytes again for each caller.
    if (this.exchange.shared instanceof KeptResponse) return chunk;
    return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8');
  }

  private endWith(body: Body): void {
    this.phase = 'waiting';
    let delivered = false;
    this.engine.send(this.exchange, body, this.route(), (sent) => {
      delivered = true;
      this.deliver(sent);
    });
    if (delivered) return;
    this.exchange.hold();
    const unseal = seal(this.response);
    this.unseal = () => {
      unseal();
      this.exchange.release();
    };
  }

  private endWithout(): void {
    // HEAD of a stream: the headers of its GET.
    if (this.request.method === 'HEAD' && this.response.statusCode !== 304) {
      this.engine.openStream(this.exchange, this.route());
    } else this.engine.sendNothing(this.exchange, this.route());
    this.deliver(null);
  }

  private deliver(body: Body | null): void {
    this.unseal?.();
    this.phase = 'passing';
    try {
      const sent = this.request.method === 'HEAD' ? null : body;
      this.original.end.call(this.response, sent ?? undefined, undefined, this.callback);
    } catch (error) {
      // A head that Node cannot write. The caller of `end()` may be long gone: tell the client by ending the connection.
      this.engine.failed(error);
      this.response.destroy();
    }
  }

  private openStream(): void {
    const { response } = this;
    const coding = this.engine.openStream(this.exchange, this.route());
    this.phase = 'passing';
    if (coding === null || this.request.method === 'HEAD') return;
    this.phase = 'encoding';
    const encoder = compressStream(coding, this.engine.streamLevel(coding));
    this.encoder = encoder;
    let bytesOut = 0;
    encoder.on('data', (chunk: Buffer) => {
      bytesOut += chunk.byteLength;
      if (!this.original.write.call(response, chunk)) encoder.pause();
    });
    encoder.on('end', () => {
      this.engine.streamed(this.route(), (encoder as unknown as { bytesWritten: number }).bytesWritten, bytesOut);
      this.phase = 'passing';
      this.original.end.call(response);
    });
    encoder.on('error', (error) => {
      this.engine.failed(error);
      response.destroy();
    });
    // Whoever waits for the response to drain, waits for the encoder now.
    encoder.on('drain', () => response.emit('drain'));
    response.on('drain', () => encoder.resume());
    response.once('close', () => encoder.destroy());
  }

  private route(): RouteCompression {
    return compressionOf(stateOfMessage(this.request)?.route) ?? this.unrouted;
  }
}

/** Node's answer to a write after the end: the callback is told, nothing is sent. */
function refuse(...given: unknown[]): false {
  const callback = given.find((each) => typeof each === 'function') as Callback | undefined;
  if (callback !== undefined) {
    process.nextTick(callback, Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' }));
  }
  return false;
}
