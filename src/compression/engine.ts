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
import { negotiate, type ContentCoding } from './rules/accept-encoding.js';
import { isKnown, tagAsNamed, tagRepresentation, translateConditions } from './rules/entity-tag.js';
import { isCompressible, isLeftAlone, mayKeep, varyWithAcceptEncoding } from './rules/policy.js';
import { KeptResponse, SharedFlight } from './shared-response/shared-flight.js';

/** Sends the final body of a response; null for none (304). */
export type Deliver = (body: Body | null) => void;

/** Different `Accept-Encoding` headers that are remembered, and their greatest length, characters. */
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
  /** Counters of the module's own paths, such as `/metrics`: nobody reads them. */
  private readonly ownPaths = startCounters();
  /** By `Accept-Encoding`: clients send few different ones. */
  private readonly negotiated = new Map<string, ContentCoding | null>();
  /** Smaller bodies go out as they are. */
  readonly thresholdBytes: number;
  private readonly beyondSockets: readonly ContentCoding[];

  constructor(
    private readonly options: ResolvedCompression,
    private readonly compressor: Compressor,
    /** The cache of bodies; with `cache: false` for shared responses only. */
    private readonly cache: ContentCache,
    private readonly report: OncePerCause,
  ) {
    this.thresholdBytes = options.thresholdBytes;
    this.beyondSockets = options.encodings.filter((coding) => coding !== 'zstd');
  }

  /** Whether a response goes out as it is because its body is small and nobody shares it. */
  passesSmall(state: RequestState, status: number, length: number): boolean {
    return length < this.thresholdBytes && status !== 304 && state.sharedAnswer === null;
  }

  /**
   * Puts the application's own tags into `If-None-Match` and `If-Match`, for tags of encoded bodies that the client names. Returns the
   * client's `If-None-Match` where it has changed. `If-Range` stays: ranges of an encoded body are not ranges of the application's.
   */
  translate(request: IncomingMessage): string | undefined {
    return translateConditions(request, () => this.negotiate(request));
  }

  /**
   * Sends a whole body: as it is, encoded, or as a 304. `deliver` is called exactly once, at once where nothing has to
   * be waited for. A compressor that fails costs the encoding, not the response.
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

  /** Gives the answer to a HEAD the headers of its GET; no length where the body of the GET would be encoded. */
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

  /**
   * Returns the encoder of a stream whose head is about to be sent, and changes the head for it. Null: the stream stays as it is,
   * also when its length is known: clients show their progress by it.
   */
  openStream(head: HeldHead): Encoder | null {
    if (head.method === 'HEAD') {
      this.sendHead(head, null);
      return null;
    }
    // Requests that wait for it need not wait for its end.
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
    return knownRoute?.isOwn === true ? this.ownPaths : this.counters;
  }

  /** Reports a failure once for each cause. */
  reportFailure(error: unknown): void {
    const reason = describeReason(error);
    this.report.report(
      `compression failed: ${reason}`,
      `Compression failed: ${reason}. The response was sent without it.`,
    );
  }

  /** Delivers an answer, and then gives it to those who wait for it. */
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

  /** The coding for this response and client, by policy and negotiation; adds `Vary` where another client would get another. */
  private choose(head: HeldHead): ContentCoding | null {
    if (!head.isEncodable) return null;
    addVary(head);
    return this.negotiate(head.request);
  }

  private negotiate({ headers, socket }: IncomingMessage): ContentCoding | null {
    const accepted = headers['accept-encoding'];
    if (typeof accepted !== 'string') return null;
    // Adapters of function platforms have sockets of their own. They take zstd for text, and break it.
    if (!(socket instanceof Socket)) return negotiate(accepted, this.beyondSockets);
    const known = this.negotiated.get(accepted);
    if (known !== undefined) return known;
    const coding = negotiate(accepted, this.options.encodings);
    if (this.negotiated.size < MAX_NEGOTIATED && accepted.length <= MAX_HEADER_LENGTH)
      this.negotiated.set(accepted, coding);
    return coding;
  }

  /** Sends a body as this client wants it: plain, encoded, or as a 304. `shared`: where the body is kept for other requests. */
  private represent(head: HeldHead, body: Body, shared: CachedBody | null, deliver: Deliver): void {
    // An unencoded body below the threshold suits every client: no `Vary`.
    const isSmall = this.isSmall(body);
    const coding = isSmall ? null : this.choose(head);
    const mayRepeat = !isSmall && this.options.cache !== null && head.shared === null && mayKeep(head, head.method);
    const entry = shared ?? (mayRepeat ? this.findRepeated(head, body) : null);
    const tag = isSmall && entry === null ? this.readTag(head) : this.findTag(head, body, entry);
    const sendPlain = (): void => {
      if (isKnown(head, tag, null)) return deliver(null);
      if (entry !== null && head.length !== null) head.set('content-length', entry.byteLength);
      deliver(body);
    };
    if (coding === null) return sendPlain();
    // Compares before it encodes: a 304 needs no encoding.
    if (isKnown(head, tag, coding)) return deliver(null);
    // Most bodies never repeat: one is kept when it comes for the second time.
    const isRepeated = entry === null && mayRepeat && this.cache.hasSeen(tag ?? makeTag(body));
    const source = (isRepeated ? this.cache.add(body) : entry) ?? toBytes(body, 'utf8');
    const finish = (encoded: Buffer | null): void => {
      if (encoded === null) return sendPlain();
      head.set('content-encoding', coding);
      head.set('content-length', encoded.byteLength);
      countEncoded(head, source.byteLength, encoded.byteLength);
      deliver(encoded);
    };
    const sendUnencoded = (error: unknown): void => {
      this.reportFailure(error);
      finish(null);
    };
    let encoded: Encoded;
    try {
      encoded = this.encode(head, coding, source);
    } catch (error) {
      return sendUnencoded(error);
    }
    if (!isThenable(encoded)) return finish(encoded);
    encoded.then(finish, sendUnencoded).catch((error: unknown) => this.reportFailure(error));
  }

  private encode(head: HeldHead, coding: ContentCoding, source: CachedBody | Uint8Array): Encoded {
    if (source instanceof CachedBody) return source.encoded(coding, this.compressor, head.shared !== null);
    return this.compressor.encode(coding, source, 'once', () => !head.gone);
  }

  /** The cached form of a body that has come twice before. */
  private findRepeated(head: HeldHead, body: Body): CachedBody | null {
    const known = this.cache.find(body);
    if (known !== null) head.counters.cacheHits += 1;
    return known;
  }

  private readTag(head: HeldHead): string | null {
    const tag = head.header('etag');
    return typeof tag === 'string' ? tag : null;
  }

  /** The application's tag, else one made of the body. Every body that may be kept has one: a tag that comes and goes helps no cache. */
  private findTag(head: HeldHead, body: Body, entry: CachedBody | null): string | null {
    if (head.header('etag') !== undefined) return this.readTag(head);
    if (!head.tags || !mayKeep(head, head.method)) return null;
    return entry?.tag ?? makeTag(body);
  }

  /** Below the threshold a coding gains nothing: the response is one segment either way. */
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

/** Bytes of an encoded response, before and after. */
export function countEncoded({ counters }: HeldHead, bytesIn: number, bytesOut: number): void {
  counters.compressed += 1;
  counters.bytesIn += bytesIn;
  counters.bytesOut += bytesOut;
}
