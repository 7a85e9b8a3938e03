import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describeReason } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import { isThenable } from '../core/thenable.js';
import type { RequestState } from '../request/request-state.js';
import type { Compressor, Encoded, Encoder } from './codec.js';
import type { ResolvedCompression } from './compression.options.js';
import { CachedBody, makeTag, toBytes, type Body, type ContentCache } from './content-cache.js';
import type { HeldHead } from './held-head.js';
import { negotiate, supportedCodings, type ContentCoding } from './rules/accept-encoding.js';
import { isKnown, tagAsNamed, tagRepresentation, translateConditions } from './rules/entity-tag.js';
import { isCompressible, isLeftAlone, mayKeep, varyWithAcceptEncoding } from './rules/policy.js';
import { KeptResponse, SharedFlight } from './shared-response/shared-flight.js';

/** Sends the final body of a response; null for none (304). */
export type Deliver = (body: Body | null) => void;

/** Bounds of remembered `Accept-Encoding` headers: their number, and the length of each, characters. */
const MAX_NEGOTIATED = 64;
const MAX_HEADER_LENGTH = 128;

const startCounters = (): HeldHead['counters'] => ({
  responses: 0,
  compressed: 0,
  cacheHits: 0,
  bytesIn: 0,
  bytesOut: 0,
});

/** Decides for every response whether and how it is encoded. */
export class CompressionEngine {
  readonly counters = startCounters();
  /** Separate counters keep the module's own paths, such as `/metrics`, out of the statistics. */
  private readonly ownPathCounters = startCounters();
  /** By `Accept-Encoding`: clients send few different values. */
  private readonly negotiated = new Map<string, ContentCoding | null>();
  readonly thresholdBytes: number;
  /** Codings for requests of function platforms, whose adapters take zstd for text and break it unless they are told. */
  private readonly platformCodings: readonly ContentCoding[];

  constructor(
    private readonly options: ResolvedCompression,
    private readonly compressor: Compressor,
    /** With `cache: false` it has shared answers only. */
    private readonly cache: ContentCache,
    private readonly report: OncePerCause,
  ) {
    this.thresholdBytes = options.thresholdBytes;
    const { encodings } = options;
    const isDefault = encodings === supportedCodings;
    this.platformCodings = isDefault ? encodings.filter((coding) => coding !== 'zstd') : encodings;
  }

  /** Whether a response goes out as it is because its body is small and no other request shares it. */
  passesSmall(state: RequestState, status: number, length: number): boolean {
    return length < this.thresholdBytes && status !== 304 && state.sharedAnswer === null;
  }

  /**
   * Replaces tags of encoded bodies in `If-None-Match` and `If-Match` by the application's tags. Returns the client's `If-None-Match`
   * when that has changed. `If-Range` stays: a range of an encoded body is no range of the application's body.
   */
  translate(request: IncomingMessage): string | undefined {
    return translateConditions(request, () => this.negotiate(request));
  }

  /**
   * Sends a whole body: as it is, encoded, or as a 304. Calls `deliver` exactly once, before it returns when no encoding is to be
   * waited for. When the compressor fails, the body goes out unencoded.
   */
  send(head: HeldHead, body: Body, deliver: Deliver): void {
    const { shared } = head;
    if (shared instanceof KeptResponse && head.status === 200) {
      this.countHit(head, shared.entry);
      // `source` is the kept body, after the application's interceptors and hooks have changed it.
      this.represent(head, shared.entry.source, shared.entry, deliver);
    } else if (shared instanceof SharedFlight) {
      const entry = shared.keep(head, body);
      const deliverToAll: Deliver = (sent) => this.deliverToAll(shared, () => deliver(sent));
      this.represent(head, body, entry, entry === null ? deliver : deliverToAll);
    } else if (head.isEncodable) this.represent(head, body, null, deliver);
    else deliver(body);
  }

  /** Sends a response without a body; a 304 of the application's own gets the Vary and the tag of its 200 (RFC 9110 section 15.4.5). */
  sendNothing(head: HeldHead, deliver: () => void): void {
    const { shared } = head;
    const type = String(head.header('content-type') ?? 'text/plain');
    if (head.status === 304 && !head.isUncompressed && isCompressible(type) && !isLeftAlone(head)) {
      addVary(head);
      tagAsNamed(head);
    }
    if (shared instanceof KeptResponse) this.countHit(head, shared.entry);
    if (shared instanceof SharedFlight && shared.keep(head, '') !== null) this.deliverToAll(shared, deliver);
    else deliver();
  }

  /** Gives the answer to a HEAD the headers of its GET, without a length where the GET's body would be encoded. */
  sendHead(head: HeldHead, body: Body | null): void {
    if (head.status === 304) return this.sendNothing(head, () => {});
    const length = body === null ? head.length : Buffer.byteLength(body);
    if (length !== null && length < this.thresholdBytes) return;
    const coding = this.choose(head);
    const tag = body === null || !head.isEncodable ? this.readTag(head) : this.findTag(head, body, null);
    if (isKnown(head, tag, coding) || coding === null) return;
    head.set('content-encoding', coding);
    head.remove('content-length');
  }

  /** The encoder of a stream whose head is about to be sent, and is changed for it. Null for one with a length: clients show progress by it. */
  openStream(head: HeldHead): Encoder | null {
    if (head.method === 'HEAD') {
      this.sendHead(head, null);
      return null;
    }
    // A stream is not shared: requests that wait for it run the handler themselves.
    if (head.shared instanceof SharedFlight) head.shared.close(true);
    if (head.length !== null) return null;
    const coding = this.choose(head);
    if (coding === null) return null;
    const tag = this.readTag(head);
    if (tag !== null) head.set('etag', tagRepresentation(tag, coding));
    head.set('content-encoding', coding);
    return this.compressor.openEncoder(coding);
  }

  countersFor({ knownRoute }: RequestState): HeldHead['counters'] {
    return knownRoute?.isOwn === true ? this.ownPathCounters : this.counters;
  }

  /** Reports a failure once for each cause; `what` became of the response. */
  reportFailure(error: unknown, what = 'The connection was closed.'): void {
    const cause = `compression failed: ${describeReason(error)}`;
    this.report.report(cause, `${cause}. ${what}`);
  }

  /** Delivers an answer to its own client, and then to the requests that wait for it. */
  private deliverToAll(flight: SharedFlight, deliver: () => void): void {
    try {
      deliver();
    } finally {
      void flight.publish(this.compressor);
    }
  }

  private countHit({ counters }: HeldHead, entry: CachedBody): void {
    counters.cacheHits += 1;
    this.cache.touch(entry);
  }

  /** The coding for this response and client; adds `Vary` where other clients may get another one. */
  private choose(head: HeldHead): ContentCoding | null {
    if (!head.isEncodable) return null;
    addVary(head);
    return this.negotiate(head.request);
  }

  private negotiate({ headers, socket }: IncomingMessage): ContentCoding | null {
    const accepted = headers['accept-encoding'];
    if (typeof accepted !== 'string') return null;
    // Only adapters of function platforms have no socket of Node's.
    if (!(socket instanceof Socket)) return negotiate(accepted, this.platformCodings);
    const known = this.negotiated.get(accepted);
    if (known !== undefined) return known;
    const coding = negotiate(accepted, this.options.encodings);
    if (this.negotiated.size < MAX_NEGOTIATED && accepted.length <= MAX_HEADER_LENGTH)
      this.negotiated.set(accepted, coding);
    return coding;
  }

  /** Sends a body as this client accepts it: plain, encoded, or as a 304. `shared`: the cache entry of a shared answer. */
  private represent(head: HeldHead, body: Body, shared: CachedBody | null, deliver: Deliver): void {
    // A small body is the same for every client: it needs no `Vary`.
    const isSmall = this.isSmall(body);
    const coding = isSmall ? null : this.choose(head);
    const mayRepeat = !isSmall && this.options.cache !== null && head.shared === null && mayKeep(head, head.method);
    const entry = shared ?? (mayRepeat ? this.findRepeated(head, body) : null);
    // Bytes take less time than a text to sum up, and the encoder needs them.
    const bytes = coding === null || entry !== null ? body : toBytes(body, 'utf8');
    const tag = isSmall && entry === null ? this.readTag(head) : this.findTag(head, bytes, entry);
    const sendPlain = (): void => {
      if (isKnown(head, tag, null)) return deliver(null);
      if (entry !== null && head.length !== null) head.set('content-length', entry.byteLength);
      deliver(body);
    };
    if (coding === null) return sendPlain();
    // Compares before it encodes: a 304 needs no encoding.
    if (isKnown(head, tag, coding)) return deliver(null);
    // Most bodies never repeat: the cache takes one when it comes for the second time.
    const isRepeated = entry === null && mayRepeat && this.cache.hasSeen(tag ?? makeTag(bytes));
    const source = (isRepeated ? this.cache.addRepeated(body) : entry) ?? toBytes(bytes, 'utf8');
    const finish = (encoded: Buffer | null): void => {
      if (encoded === null) return sendPlain();
      head.set('content-encoding', coding);
      head.set('content-length', encoded.byteLength);
      countEncoded(head, source.byteLength, encoded.byteLength);
      deliver(encoded);
    };
    const sendUnencoded = (error: unknown): void => {
      this.reportFailure(error, 'The response was sent without it.');
      finish(null);
    };
    let encoded: Encoded;
    try {
      encoded = this.encode(head, coding, source);
    } catch (error) {
      return sendUnencoded(error);
    }
    if (!isThenable(encoded)) return finish(encoded);
    encoded
      .then(finish, sendUnencoded)
      .catch((error: unknown) => this.reportFailure(error, 'The response may be incomplete.'));
  }

  private encode(head: HeldHead, coding: ContentCoding, source: CachedBody | Uint8Array): Encoded {
    if (source instanceof CachedBody) return source.encode(coding, this.compressor, head.shared !== null);
    return this.compressor.encode(coding, source, 'once', () => !head.gone);
  }

  private findRepeated(head: HeldHead, body: Body): CachedBody | null {
    const known = this.cache.find(body);
    if (known !== null) head.counters.cacheHits += 1;
    return known;
  }

  private readTag(head: HeldHead): string | null {
    const tag = head.header('etag');
    return typeof tag === 'string' ? tag : null;
  }

  /** The application's tag, else one of the body, also for a client that gets no coding: a tag that comes and goes helps no cache. */
  private findTag(head: HeldHead, body: Body, entry: CachedBody | null): string | null {
    if (head.header('etag') !== undefined) return this.readTag(head);
    if (!head.mayAddTag || !mayKeep(head, head.method)) return null;
    return entry?.tag ?? makeTag(body);
  }

  private isSmall(body: Body): boolean {
    const { thresholdBytes } = this;
    if (body.length === 0) return true;
    if (body.length >= thresholdBytes) return false;
    // A character has at most three bytes in UTF-8.
    return body.length * 3 < thresholdBytes || Buffer.byteLength(body) < thresholdBytes;
  }
}

function addVary(head: HeldHead): void {
  head.set('vary', varyWithAcceptEncoding(head.header('vary')));
}

export function countEncoded({ counters }: HeldHead, bytesIn: number, bytesOut: number): void {
  counters.compressed += 1;
  counters.bytesIn += bytesIn;
  counters.bytesOut += bytesOut;
}
