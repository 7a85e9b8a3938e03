import { ServerResponse, type IncomingMessage } from 'node:http';
import type { RequestState } from '../request/request-state.js';
import { noteHead } from '../request/tracker.js';
import { countBytes, isChunk, mayEnd, normalizeText, replaceUnknown, toBytes, type Body } from './content-cache.js';
import { EncodedStream } from './encoded-stream.js';
import { countEncoded, type CompressionEngine } from './engine.js';
import {
  applyHead,
  findCallback,
  HeldHead,
  isHeld,
  readGivenHead,
  readLength,
  refuseChunk,
  refuseHead,
  replaceSending,
  type Given,
  type Hold,
  type Sending,
} from './held-head.js';

/**
 * States of a response between the application's calls and Node. `headed`: the head was given, and perhaps a stream follows; `encoding`:
 * a stream passes an encoder; `ended`: the body is being encoded; `passing`: everything goes out as it is.
 */
type Phase = 'open' | 'headed' | 'encoding' | 'ended' | 'passing';

const NONE: readonly never[] = [];

/**
 * Replaces Node's own functions of a response, from the server's `request` event on: the application's wrappers of them receive the
 * plain body and the head that it has set.
 */
export class HeldResponse implements Hold {
  private phase: Phase = 'open';
  private known: HeldHead | null = null;
  private stream: EncodedStream | null = null;
  /** The application has not called `writeHead`: its first write or end implies the head. */
  private isImplied = false;
  /** Bytes of a body that `end` was given whole, without a head before: Node would add them as `Content-Length`. */
  private wholeLength: number | null = null;
  /** Writes of a body with a declared length, which wait for `end`, and the bytes that are missing behind them. */
  private kept: readonly Given[] = NONE;
  private missing = 0;
  private reason: readonly string[] = NONE;
  /** Functions that others had set on the response itself before; null: none. */
  private readonly own: Partial<Sending> | null;
  /** The client's `If-None-Match`, where the application sees another. */
  private readonly ifNoneMatch: string | undefined;

  constructor(
    private readonly state: RequestState,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    private readonly engine: CompressionEngine,
  ) {
    this.ifNoneMatch = engine.translate(request);
    this.own = replaceSending(response);
  }

  get holdsHead(): boolean {
    return this.phase !== 'open' && this.phase !== 'passing';
  }

  get hasEnded(): boolean {
    return this.phase === 'ended';
  }

  get needsDrain(): boolean {
    return this.stream?.needsDrain ?? false;
  }

  private get head(): HeldHead {
    const { state, request, response, engine } = this;
    return (this.known ??= new HeldHead(state, request, response, engine.countersFor(state), this.ifNoneMatch));
  }

  /** Calls the response's function below the hold. The prototype's is read at each call: agents replace it meanwhile. */
  private send<K extends keyof Sending>(name: K, given: readonly unknown[]): ReturnType<Sending[K]> {
    const usual = name === 'writeHead' ? noteHead : (Object.getPrototypeOf(this.response) as Sending)[name];
    return Reflect.apply(this.own?.[name] ?? usual, this.response, given) as ReturnType<Sending[K]>;
  }

  writeHead(given: readonly unknown[]): ServerResponse {
    if (this.phase === 'passing') return this.send('writeHead', given);
    if (this.phase !== 'open') refuseHead();
    // The application has taken the stand-ins off: Node's own `write` and `end` would send no head that is held.
    if (!isHeld(this.response)) return this.passHead(given);
    const head = readGivenHead(given);
    const isSmall = this.engine.passesSmall(this.state, head.status, readLength(head));
    if (isSmall || !applyHead(this.response, head)) return this.passHead(given);
    this.known = null;
    if (this.response instanceof ServerResponse) this.reason = [this.response.statusMessage];
    if (this.head.passes) return this.passHead([head.status, ...this.reason]);
    this.phase = 'headed';
    // An implied head of a whole body is mostly sent before the application reads it.
    if (this.wholeLength === null) this.head.showAnswered();
    return this.response;
  }

  private passHead(given: readonly unknown[]): ServerResponse {
    this.addLength(this.response.statusCode);
    return this.pass('writeHead', given);
  }

  /** Lets the response go out as it is. Where Node refuses what it gets, another head or end may follow. */
  private pass(name: 'writeHead' | 'end', given: readonly unknown[]): ServerResponse {
    const { phase } = this;
    this.phase = 'passing';
    try {
      const sent = this.send(name, given);
      if (phase !== 'passing') this.engine.countersFor(this.state).responses += 1;
      return sent;
    } catch (error) {
      this.phase = phase;
      throw error;
    }
  }

  /** Adds the length of a whole body: Node would count it while it writes the head, but here the head is written before. */
  private addLength(status: number): void {
    const { response, wholeLength } = this;
    if (wholeLength === null || this.request.method === 'HEAD' || status === 204 || status === 304) return;
    // Over HTTP/2 Node sends no body with it.
    if (status === 205 && !(response instanceof ServerResponse)) return;
    if (['content-length', 'transfer-encoding', 'trailer'].some((name) => response.hasHeader(name))) return;
    this.head.set('Content-Length', wholeLength);
  }

  /** Calls the application's wrapper of `writeHead`, if there is one, as Node does. */
  private implyHead(wholeLength: number | null): Phase {
    // By a function of the prototype.
    if (this.response.headersSent) return (this.phase = 'passing');
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

  write(given: Given): boolean {
    const [chunk] = given;
    // Node refuses an invalid chunk before anything is sent.
    if (this.phase === 'open' && isChunk(chunk)) this.implyHead(null);
    if (this.phase === 'headed' && isChunk(chunk)) {
      if (this.keepUntilEnd(given)) return true;
      this.openStream();
    }
    if (this.phase === 'encoding') return this.stream!.write(...given);
    if (this.phase === 'ended') return refuseChunk(this.response, given);
    return this.send('write', given);
  }

  /** Fastify before 5.12 writes a body and ends at once, over HTTP/2 in pieces; express-session sends the last byte later. The rest streams. */
  private keepUntilEnd(given: Given): boolean {
    if (this.head.length === null || this.request.method === 'HEAD') return false;
    const isFirst = this.kept.length === 0;
    const missing = (isFirst ? this.head.length : this.missing) - countBytes(given[0], given[1]);
    const isWhole = isFirst && (missing === 1 || (missing === 0 && !this.isImplied));
    if (!isWhole && (this.response instanceof ServerResponse || this.isImplied || missing < 0)) return false;
    this.kept = [...this.kept, given];
    this.missing = missing;
    if (isFirst && missing !== 1) process.nextTick(() => this.kept.length > 0 && this.openStream());
    return true;
  }

  flushHeaders(): void {
    if (this.phase === 'open') this.implyHead(null);
    if (this.phase === 'headed') this.openStream();
    if (this.phase !== 'ended') this.send('flushHeaders', []);
  }

  end(given: Given): ServerResponse {
    const { response } = this;
    const [chunk, encoding] = given;
    if (this.phase === 'open' && this.isSmall(chunk, encoding)) this.pass('end', given);
    else if (this.phase === 'passing') return this.send('end', given);
    else if (this.phase === 'encoding') this.endStream(given);
    else if (this.phase === 'ended' && isChunk(chunk)) refuseChunk(this.response, given);
    // Node accepts a second `end()` without a chunk.
    else if (this.phase === 'ended') this.callBack(given);
    else if (!mayEnd(chunk)) this.pass('end', given);
    else this.endWhole(given);
    return response;
  }

  private isSmall(chunk: unknown, encoding: unknown): boolean {
    if (this.request.method === 'HEAD' || !mayEnd(chunk)) return false;
    // Counting the bytes of a text reads all of it.
    if (isChunk(chunk) && chunk.length >= this.engine.thresholdBytes) return false;
    return this.engine.passesSmall(this.state, this.response.statusCode, countBytes(chunk, encoding));
  }

  private endWhole(given: Given): void {
    const { engine, kept } = this;
    const [chunk, encoding] = given;
    if (this.phase === 'open' && this.implyHead(countBytes(chunk, encoding)) !== 'headed') {
      this.pass('end', given);
      return;
    }
    if (kept.length > 0) return this.endKept(kept, given);
    const read = this.request.method === 'HEAD' ? replaceUnknown(encoding) : encoding;
    const body = isChunk(chunk) ? normalizeText(chunk, read) : null;
    if (this.request.method === 'HEAD') {
      engine.sendHead(this.head, body);
      this.deliver([findCallback(given)]);
    } else if (!this.head.isKept && !body?.length) engine.sendNothing(this.head, () => this.deliver(given));
    else this.endWith(body ?? '', given);
  }

  private endKept(kept: readonly Given[], given: Given): void {
    for (const each of kept) this.callBack(each);
    this.kept = NONE;
    const parts = [...kept, given].filter(([part, encoding]) => countBytes(part, encoding) > 0);
    if (parts.length < 2) return this.endWhole([parts[0]?.[0], parts[0]?.[1], findCallback(given)]);
    const body = Buffer.concat(parts.map(([part, encoding]) => toBytes(part as Body, encoding)));
    this.endWith(body, [body, findCallback(given)]);
  }

  private endWith(body: Body, given: Given): void {
    this.phase = 'ended';
    // An unchanged body goes out as it was given: Node writes the head in a text's encoding, but as latin1 before bytes.
    this.engine.send(this.head, body, (sent) => {
      if (sent === body) return this.deliver(given);
      // A kept body includes changes that the application's layers have made to this one again.
      if (this.wholeLength !== null && sent !== null) this.wholeLength = Buffer.byteLength(sent);
      this.deliver([sent ?? undefined, undefined, findCallback(given)]);
    });
    if (this.phase === 'ended') this.head.showAnswered();
  }

  private deliver(given: Given): void {
    const { response } = this;
    try {
      this.sendHead();
      // Over HTTP/2 Node's `end()` calls the response's `write()`, and with it the application's.
      if (!(response instanceof ServerResponse)) {
        (response as unknown as Sending).write = (...chunk) => this.send('write', chunk);
      }
      this.send('end', this.request.method === 'HEAD' ? [findCallback(given)] : given);
    } catch (error) {
      // `end()` may have returned long ago: the client learns of the failure by the end of its connection.
      this.engine.reportFailure(error);
      response.destroy();
    }
  }

  private sendHead(): void {
    const { head } = this;
    this.phase = 'passing';
    head.counters.responses += 1;
    this.addLength(head.status);
    this.send('writeHead', [head.status, ...(head.status === 304 ? [] : this.reason)]);
  }

  private openStream(): void {
    const { engine, head, kept, response } = this;
    const encoder = engine.openStream(head);
    this.sendHead();
    if (encoder !== null) {
      this.phase = 'encoding';
      const write = (chunk: Buffer): boolean => this.send('write', [chunk]);
      this.stream = new EncodedStream(encoder, response, write, (error) => this.closeStream(error));
    }
    this.kept = NONE;
    for (const each of kept) this.write(each);
  }

  private closeStream(error: Error | null): void {
    const { engine, response, stream } = this;
    if (response.destroyed) return;
    this.phase = 'passing';
    if (error === null) {
      countEncoded(this.head, stream!.bytesIn, stream!.bytesOut);
      this.send('end', []);
    } else {
      engine.reportFailure(error);
      response.destroy();
    }
  }

  private endStream(given: Given): void {
    this.stream!.end(given[0], given[1]);
    this.phase = 'ended';
    this.callBack(given);
  }

  private callBack(given: Given): void {
    const done = findCallback(given);
    if (done !== undefined) this.response.once('finish', () => done());
  }
}
