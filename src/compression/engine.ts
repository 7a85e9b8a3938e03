import type { Transform } from 'node:stream';
import { reasonOf } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import { bytesOf, type Body, type CachedBody, type ContentCache } from './cache/content-cache.js';
import { compressStream } from './codec/codec.js';
import type { Compressor, Encoded } from './codec/compressor.js';
import type { ResolvedCompression } from './compression.options.js';
import type { ResponseView } from './response-view.js';
import { RouteCompression } from './route-compression.js';
import { negotiate, type ContentCoding } from './rules/accept-encoding.js';
import { conditionOf, expressTagLength, isExpressTag, tagAsNamed, weakened } from './rules/entity-tag.js';
import { isCompressible, isLeftAlone, mayEncode, mayKeep, varyWithAcceptEncoding } from './rules/policy.js';
import { KeptResponse, SharedFlight } from './shared-response/shared-flight.js';
import { isThenable } from '../core/thenable.js';

/** Sends the body that a response has in the end; null for one without a body (304). */
export type Deliver = (body: Body | null) => void;

/** Decides for every response whether and how it is encoded. The same on both adapters; what differs is behind {@link ResponseView}. */
export class CompressionEngine {
  /** For responses whose route it does not know. */
  readonly unrouted = new RouteCompression();
  /** For those of Fastify's routes with `compress: false`. */
  readonly off = new RouteCompression(true);

  constructor(
    private readonly options: ResolvedCompression,
    private readonly compressor: Compressor,
    /** With `cache: false` for shared responses only. */
    private readonly cache: ContentCache,
    private readonly report: OncePerCause,
  ) {}

  /**
   * Whether a whole body goes out as it is, whoever asks for it: it is below the threshold, serves nobody else, and has no tag to be
   * compared.
   * The way of most responses, so it asks the client for nothing. True: the response is counted. False: {@link send} it.
   */
  passes(view: ResponseView, body: Body): boolean {
    if (view.shared !== null || !this.isSmall(body)) return false;
    const tag = view.header('etag');
    // Express has compared its own tag already.
    if (tag !== undefined && !isExpressTag(String(tag), body)) return false;
    view.route.counters.responses += 1;
    return true;
  }

  /**
   * Sends a whole body: as it is, encoded, or as a 304. `deliver` is called exactly once, at once where nothing has to
   * be waited for. A compressor that fails costs the encoding, not the response.
   */
  send(view: ResponseView, body: Body, deliver: Deliver): void {
    view.route.counters.responses += 1;
    const { shared } = view;
    if (shared instanceof KeptResponse && view.status === 200 && body === shared.entry.source) {
      this.hitKept(view, shared);
      this.represent(view, body, shared.entry, deliver);
    } else if (shared === null || shared instanceof KeptResponse) {
      // What is not ours to encode is not ours to answer with a 304 either.
      if (!this.isOurs(view)) return deliver(body);
      this.represent(view, body, this.lookUp(view, body), deliver);
    } else {
      const entry = shared.keep(view, body);
      const deliverToAll: Deliver = (sent) => this.deliverToAll(shared, view, () => deliver(sent));
      this.represent(view, body, entry, entry === null ? deliver : deliverToAll);
    }
  }

  /** Sends a response without a body; a 304 of the application's own gets the Vary and the tag of its 200 (RFC 9110 section 15.4.5). */
  sendNothing(view: ResponseView, deliver: () => void): void {
    view.route.counters.responses += 1;
    const { shared } = view;
    if (view.status === 304 && this.wasEncoded(view)) {
      addVary(view);
      tagAsNamed(view);
    }
    if (shared instanceof KeptResponse) this.hitKept(view, shared);
    if (shared instanceof SharedFlight && shared.keep(view, '') !== null) this.deliverToAll(shared, view, deliver);
    else deliver();
  }

  /** Delivers an answer, and then gives it to those who wait for it. */
  private deliverToAll(flight: SharedFlight, view: ResponseView, deliver: () => void): void {
    try {
      deliver();
    } finally {
      void flight.publish(view, this.compressor);
    }
  }

  /**
   * What encodes a stream whose head is about to be sent, and counts it when it ends; changes the head accordingly, of HEAD too.
   * Null: leave the stream alone. One whose length the application knows is worth more with it: clients show how far they are.
   */
  openStream(view: ResponseView): Transform | null {
    view.route.counters.responses += 1;
    const coding = this.choose(view);
    if (coding === null) return null;
    const tag = view.header('etag');
    if (typeof tag === 'string') view.set('etag', weakened(tag));
    view.set('content-encoding', coding);
    if (view.method === 'HEAD') return null;
    const { counters } = view.route;
    const level = this.compressor.levelOfStream(coding);
    return compressStream(coding, level, (bytesIn, bytesOut) => counters.encoded(bytesIn, bytesOut));
  }

  /** Reports a failure once for each cause. */
  failed(error: unknown): void {
    const reason = reasonOf(error);
    this.report.report(
      `compression failed: ${reason}`,
      `Compression failed: ${reason}. The response was sent without it.`,
    );
  }

  private isOurs(view: ResponseView): boolean {
    return !view.off && mayEncode(view);
  }

  /** The coding for this response and client, by policy and negotiation; adds `Vary` where another client would get another. */
  private choose(view: ResponseView): ContentCoding | null {
    if (!this.isOurs(view)) return null;
    addVary(view);
    return negotiate(view.requestHeader('accept-encoding'), this.options.encodings);
  }

  private lookUp(view: ResponseView, body: Body): CachedBody | null {
    const { route } = view;
    if (this.options.cache === null || this.isSmall(body) || !mayKeep(view, view.method) || !route.mayRepeat()) {
      return null;
    }
    const known = this.cache.find(body);
    if (known === null) return this.cache.add(body);
    route.repeats();
    route.counters.cacheHits += 1;
    return known;
  }

  private represent(view: ResponseView, body: Body, entry: CachedBody | null, deliver: Deliver): void {
    const { compressor } = this;
    const { route } = view;
    // An unencoded body below the threshold suits every client: no `Vary`.
    const coding = this.isSmall(body) ? null : this.choose(view);
    const notModified = conditionOf(view, body, entry);
    // Asked before it is encoded, so that it need not be.
    if (notModified(coding)) return deliver(null);
    if (coding === null) return deliver(body);
    const finish = (encoded: Encoded | null): void => {
      if (encoded === null) return deliver(notModified(null) ? null : body);
      view.set('content-encoding', coding);
      view.set('content-length', encoded.bytes.byteLength);
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
          ? compressor.encode(coding, bytesOf(body), 'once', () => !view.gone)
          : entry.encoded(coding, compressor, view.shared !== null);
    } catch (error) {
      return unencoded(error);
    }
    if (isThenable(encoded)) encoded.then(finish, unencoded).catch((error: unknown) => this.failed(error));
    else finish(encoded);
  }

  /** Below the threshold a coding gains nothing: the response is one segment either way. */
  private isSmall(body: Body): boolean {
    const { thresholdBytes } = this.options;
    if (body.length === 0) return true;
    if (body.length >= thresholdBytes) return false;
    // A character has at most three bytes in UTF-8.
    return body.length * 3 < thresholdBytes || Buffer.byteLength(body) < thresholdBytes;
  }

  /** Whether the 200 that a 304 stands for may be encoded, as far as its head still tells. */
  private wasEncoded(view: ResponseView): boolean {
    if (view.off || isLeftAlone(view)) return false;
    if (!isCompressible(String(view.header('content-type') ?? 'text/plain'))) return false;
    // Express's own tag begins with the length of the body that there would have been.
    const length = expressTagLength(String(view.header('etag')));
    return length === null || length >= this.options.thresholdBytes;
  }

  private hitKept({ route }: ResponseView, { entry }: KeptResponse): void {
    route.counters.cacheHits += 1;
    this.cache.touch(entry);
  }
}

function addVary(view: ResponseView): void {
  view.set('vary', varyWithAcceptEncoding(view.header('vary')));
}
