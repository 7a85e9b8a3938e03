import type { IncomingMessage } from 'node:http';
import type { Transform } from 'node:stream';
import { isThenable } from '../core/thenable.js';
import { reasonOf } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import { bytesOf, contentTag, type Body, type CachedBody, type ContentCache } from './cache/content-cache.js';
import { compressStream } from './codec/codec.js';
import type { Compressor, Encoded } from './codec/compressor.js';
import type { ResolvedCompression } from './compression.options.js';
import type { RequestState } from '../request/request-state.js';
import type { HeldHead } from './held-head.js';
import { compressionOf, RouteCompression } from './route-compression.js';
import { negotiate, type ContentCoding } from './rules/accept-encoding.js';
import { expressTagLength, isKnown, representationTag, tagAsNamed, translateConditions } from './rules/entity-tag.js';
import { isCompressible, isLeftAlone, mayEncode, mayKeep, varyWithAcceptEncoding } from './rules/policy.js';
import { KeptResponse, SharedFlight } from './shared-response/shared-flight.js';

/** Sends the body that a response has in the end; null for one without a body (304). */
export type Deliver = (body: Body | null) => void;

/** Decides for every response whether and how it is encoded. */
export class CompressionEngine {
  /** State for responses of an unknown route. */
  readonly unrouted = new RouteCompression();

  constructor(
    private readonly options: ResolvedCompression,
    private readonly compressor: Compressor,
    /** The cache of bodies; with `cache: false` for shared responses only. */
    private readonly cache: ContentCache,
    private readonly report: OncePerCause,
  ) {}

  /** Whether a response has a small body, or none, for its own client only. True: it is counted, and goes out as it is. */
  passesSmall(state: RequestState, status: number, length: number): boolean {
    if (!(length < this.options.thresholdBytes) || status === 304 || state.sharedAnswer !== null) return false;
    this.count(compressionOf(state) ?? this.unrouted);
    return true;
  }

  /** Whether a response goes out as it is, by its head. True: it is counted. */
  leaves(head: HeldHead): boolean {
    if (head.shared !== null || head.status === 304 || this.isOurs(head)) return false;
    this.count(head.route);
    return true;
  }

  /**
   * Gives the application the tags of its own for those that the client names in `If-None-Match` and `If-Match`. Returns the client's
   * `If-None-Match` where that has changed it. `If-Range` stays: a range of what is encoded is none of what the application has.
   */
  translate(request: IncomingMessage): string | undefined {
    return translateConditions(request, () => this.negotiated(request.headers['accept-encoding']));
  }

  /**
   * Sends a whole body: as it is, encoded, or as a 304. `deliver` is called exactly once, at once where nothing has to
   * be waited for. A compressor that fails costs the encoding, not the response.
   */
  send(head: HeldHead, body: Body, deliver: Deliver): void {
    this.count(head.route);
    const { shared } = head;
    if (shared instanceof KeptResponse && head.status === 200) {
      this.hitKept(head, shared);
      // The kept body includes the changes of the application's own layers.
      this.represent(head, shared.entry.source, shared.entry, deliver);
    } else if (shared === null || shared instanceof KeptResponse) {
      // A response that is not ours to encode is not ours to answer with a 304 either.
      if (!this.isOurs(head)) return deliver(body);
      this.represent(head, body, this.lookUp(head, body), deliver);
    } else {
      const entry = shared.keep(head, body);
      const deliverToAll: Deliver = (sent) => this.deliverToAll(shared, head, () => deliver(sent));
      this.represent(head, body, entry, entry === null ? deliver : deliverToAll);
    }
  }

  /** Sends a response without a body; a 304 of the application's own gets the Vary and the tag of its 200 (RFC 9110 section 15.4.5). */
  sendNothing(head: HeldHead, deliver: () => void): void {
    this.count(head.route);
    const { shared } = head;
    if (head.status === 304 && this.wasEncoded(head)) {
      addVary(head);
      tagAsNamed(head);
    }
    if (shared instanceof KeptResponse) this.hitKept(head, shared);
    if (shared instanceof SharedFlight && shared.keep(head, '') !== null) this.deliverToAll(shared, head, deliver);
    else deliver();
  }

  /** Changes the head of a HEAD to that of its GET, without the length of a body that was not encoded. */
  sendHead(head: HeldHead, body: Body | null): void {
    if (head.status === 304) return this.sendNothing(head, () => {});
    this.count(head.route);
    const length = body === null ? head.length : Buffer.byteLength(body);
    if (length !== null && length < this.options.thresholdBytes) return;
    const coding = this.choose(head);
    const tag =
      head.header('etag') ?? (body === null || !this.isOurs(head) ? undefined : this.contentTag(head, body, null));
    if (isKnown(head, typeof tag === 'string' ? tag : null, coding) || coding === null) return;
    head.set('content-encoding', coding);
    head.remove('content-length');
  }

  /** Delivers an answer, and then gives it to those who wait for it. */
  private deliverToAll(flight: SharedFlight, head: HeldHead, deliver: () => void): void {
    try {
      deliver();
    } finally {
      void flight.publish(head, this.compressor);
    }
  }

  /**
   * Returns the encoder of a stream whose head is about to be sent, which counts it at its end; changes the head accordingly.
   * Null: the stream stays as it is. A length that the application knows is worth more: clients show their progress by it.
   */
  openStream(head: HeldHead): Transform | null {
    if (head.method === 'HEAD') {
      this.sendHead(head, null);
      return null;
    }
    this.count(head.route);
    if (head.length !== null) return null;
    const coding = this.choose(head);
    if (coding === null) return null;
    this.tagAs(head, coding);
    head.set('content-encoding', coding);
    const { counters } = head.route;
    const level = this.compressor.levelOfStream(coding);
    return compressStream(coding, level, (bytesIn, bytesOut) => counters.encoded(bytesIn, bytesOut));
  }

  private tagAs(head: HeldHead, coding: ContentCoding): void {
    const tag = head.header('etag');
    if (typeof tag === 'string') head.set('etag', representationTag(tag, coding));
  }

  private count({ counters }: RouteCompression): void {
    counters.responses += 1;
  }

  /** Reports a failure once for each cause. */
  failed(error: unknown): void {
    const reason = reasonOf(error);
    this.report.report(
      `compression failed: ${reason}`,
      `Compression failed: ${reason}. The response was sent without it.`,
    );
  }

  private isOurs(head: HeldHead): boolean {
    return !head.off && mayEncode(head);
  }

  /** The coding for this response and client, by policy and negotiation; adds `Vary` where another client would get another. */
  private choose(head: HeldHead): ContentCoding | null {
    if (!this.isOurs(head)) return null;
    addVary(head);
    return this.negotiated(head.requestHeader('accept-encoding'));
  }

  private negotiated(accepted: string | undefined): ContentCoding | null {
    return negotiate(accepted, this.options.encodings);
  }

  private lookUp(head: HeldHead, body: Body): CachedBody | null {
    const { route } = head;
    if (this.options.cache === null || this.isSmall(body) || !mayKeep(head, head.method) || !route.mayRepeat()) {
      return null;
    }
    const known = this.cache.find(body);
    if (known === null) return this.cache.add(body);
    route.repeats();
    route.counters.cacheHits += 1;
    return known;
  }

  private represent(head: HeldHead, body: Body, entry: CachedBody | null, deliver: Deliver): void {
    const { compressor } = this;
    const { route } = head;
    // An unencoded body below the threshold suits every client: no `Vary`.
    const isSmall = this.isSmall(body);
    const coding = isSmall ? null : this.choose(head);
    const tag = head.header('etag') ?? (isSmall && entry === null ? undefined : this.contentTag(head, body, entry));
    const base = typeof tag === 'string' ? tag : null;
    const plain = (): void => {
      if (isKnown(head, base, null)) return deliver(null);
      if (entry !== null && head.length !== null) head.set('content-length', entry.byteLength);
      deliver(body);
    };
    if (coding === null) return plain();
    // Compares before it encodes: a 304 needs no encoding.
    if (isKnown(head, base, coding)) return deliver(null);
    const finish = (encoded: Encoded | null): void => {
      if (encoded === null) return plain();
      head.set('content-encoding', coding);
      head.set('content-length', encoded.bytes.byteLength);
      route.counters.encoded(entry?.byteLength ?? Buffer.byteLength(body), encoded.bytes.byteLength);
      deliver(encoded.bytes);
    };
    const unencoded = (error: unknown): void => {
      this.failed(error);
      finish(null);
    };
    let encoded: Encoded | null | Promise<Encoded | null>;
    try {
      encoded =
        entry === null
          ? compressor.encode(coding, bytesOf(body), 'once', () => !head.gone)
          : entry.encoded(coding, compressor, head.shared !== null);
    } catch (error) {
      return unencoded(error);
    }
    if (isThenable(encoded)) encoded.then(finish, unencoded).catch((error: unknown) => this.failed(error));
    else finish(encoded);
  }

  /** Tag of every body that may be kept, cached here or not: a tag that comes and goes is no use to a client's cache. */
  private contentTag(head: HeldHead, body: Body, entry: CachedBody | null): string | undefined {
    if (!head.tags || !mayKeep(head, head.method)) return undefined;
    return entry?.tag ?? contentTag(body);
  }

  /** Below the threshold a coding gains nothing: the response is one segment either way. */
  private isSmall(body: Body): boolean {
    const { thresholdBytes } = this.options;
    if (body.length === 0) return true;
    if (body.length >= thresholdBytes) return false;
    // A character has at most three bytes in UTF-8.
    return body.length * 3 < thresholdBytes || Buffer.byteLength(body) < thresholdBytes;
  }

  /** Whether the 200 behind a 304 may be encoded, as far as its head still shows. */
  private wasEncoded(head: HeldHead): boolean {
    if (head.off || isLeftAlone(head)) return false;
    if (!isCompressible(String(head.header('content-type') ?? 'text/plain'))) return false;
    // Express's own tag begins with the length of the body that there would have been.
    const length = expressTagLength(String(head.header('etag')));
    return length === null || length >= this.options.thresholdBytes;
  }

  private hitKept({ route }: HeldHead, { entry }: KeptResponse): void {
    route.counters.cacheHits += 1;
    this.cache.touch(entry);
  }
}

function addVary(head: HeldHead): void {
  head.set('vary', varyWithAcceptEncoding(head.header('vary')));
}
