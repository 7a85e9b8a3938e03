import type { OncePerCause } from '../core/reporter.js';
import { Negotiator } from './rules/accept-encoding.js';
import { bytesOf, type Body, type CachedBody } from './cache/cached-body.js';
import { CompressionCounters } from './compression-counters.js';
import type { Compressor, Encoded } from './codec/compressor.js';
import { ConditionalResponse } from './conditional.js';
import type { ContentCoding } from './rules/content-coding.js';
import type { ContentCache } from './cache/content-cache.js';
import type { Exchange } from './exchange.js';
import { isExpressTag, weakened } from './rules/entity-tag.js';
import { type FieldValue, VARY, varyWithAcceptEncoding } from './rules/field-value.js';
import { CompressibleTypes } from './rules/media-type.js';
import { mayEncode, mayKeep } from './rules/policy.js';
import type { RouteCompression } from './route-compression.js';
import { KeptResponse, SharedFlight } from './shared-response/shared-route.js';

/** Sends the body that a response has in the end; null for one without a body (304). */
export type Deliver = (body: Body | null) => void;

/** What the engine is made of. */
export interface EngineParts {
  readonly thresholdBytes: number;
  readonly encodings: readonly ContentCoding[];
  readonly compressor: Compressor;
  readonly cache: ContentCache;
  /** Whether bodies are looked up by content. Shared responses use the cache in any case. */
  readonly contentCache: boolean;
  readonly report: OncePerCause;
}

/** Decides for every response whether and how it is encoded. The same on both adapters; what differs is behind {@link Exchange}. */
export class CompressionEngine {
  readonly totals = new CompressionCounters();
  private readonly types = new CompressibleTypes();
  private readonly negotiator: Negotiator;

  constructor(readonly parts: EngineParts) {
    this.negotiator = new Negotiator(parts.encodings);
  }

  /**
   * Whether a whole body goes out as it is, whoever asks for it: it is below the threshold, serves nobody else, and has no tag to be
   * compared.
   * The way of most responses, so it asks the client for nothing (the first look at a request's headers makes Node parse
   * them) and allocates nothing. True: the response is counted and has its `Vary`. False: {@link send} it.
   */
  passes(exchange: Exchange, body: Body, route: RouteCompression): boolean {
    if (!this.isSmall(body) || exchange.shared !== null) return false;
    const tag = exchange.header('etag');
    // Express has compared its own tag already.
    if (tag !== undefined && !isExpressTag(String(tag), body)) return false;
    this.seen(route);
    this.markVary(exchange, route);
    return true;
  }

  /**
   * The same for the plainest of responses, a 200 of its own with no header that decides but its type. Adds `Vary` to `headers`,
   * which have lower-case names.
   */
  passesPlain(headers: Record<string, FieldValue>, body: Body, route: RouteCompression): boolean {
    if (!this.isSmall(body)) return false;
    this.seen(route);
    const type = headers['content-type'];
    if (!route.off && typeof type === 'string' && this.types.has(type)) headers['vary'] = VARY;
    return true;
  }

  /**
   * Sends a whole body: as it is, encoded, or as a 304. `deliver` is called exactly once, at once where nothing has to
   * be waited for. A compressor that fails costs the encoding, not the response.
   */
  send(exchange: Exchange, body: Body, route: RouteCompression, deliver: Deliver): void {
    this.seen(route);
    const { shared } = exchange;
    const { cache, compressor } = this.parts;
    if (shared === null) {
      this.represent(exchange, body, this.lookUp(exchange, body, route), route, deliver);
    } else if (shared instanceof KeptResponse) {
      this.hit(route);
      cache.touch(shared.entry);
      this.represent(exchange, shared.entry.source, shared.entry, route, deliver);
    } else {
      const kept = shared.keep(exchange, body, cache);
      this.represent(exchange, body, kept?.entry ?? null, route, deliver);
      if (kept !== null) void shared.publish(kept, compressor);
    }
  }

  /** Counts a response without a body; a 304 of the application's own gets the Vary of its 200. */
  sendNothing(exchange: Exchange, route: RouteCompression): void {
    this.seen(route);
    this.choose(exchange, route);
    if (exchange.shared instanceof SharedFlight) exchange.shared.refuse();
  }

  /** The coding for a stream whose head is about to be sent; changes the head accordingly. Null: leave the stream alone. */
  openStream(exchange: Exchange, route: RouteCompression): ContentCoding | null {
    this.seen(route);
    const coding = this.choose(exchange, route);
    const length = exchange.header('content-length');
    if (coding === null || (length !== undefined && Number(length) < this.parts.thresholdBytes)) return null;
    const tag = exchange.header('etag');
    if (typeof tag === 'string') exchange.set('etag', weakened(tag));
    markEncoded(exchange, coding);
    exchange.remove('content-length');
    return coding;
  }

  /** The level for a stream that begins now. */
  streamLevel(coding: ContentCoding): number {
    const { compressor } = this.parts;
    return compressor.levelFor(coding, Number.POSITIVE_INFINITY, compressor.streamEffort);
  }

  /** Counts a stream that was encoded. */
  streamed(route: RouteCompression, bytesIn: number, bytesOut: number): void {
    this.totals.encoded(bytesIn, bytesOut);
    route.counters.encoded(bytesIn, bytesOut);
  }

  /** Reports a failure once for each cause. */
  failed(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.parts.report.report(
      `compression failed: ${reason}`,
      `Compression failed: ${reason}. The response was sent without it.`,
    );
  }

  /** The coding for this response and client, by policy and negotiation; adds `Vary` where another client would get another. */
  private choose(exchange: Exchange, route: RouteCompression): ContentCoding | null {
    return this.markVary(exchange, route) ? this.negotiator.choose(exchange.requestHeader('accept-encoding')) : null;
  }

  /** Whether the response may be encoded; if so, adds `Vary`: another client may get it encoded, another time. */
  private markVary(exchange: Exchange, route: RouteCompression): boolean {
    if (route.off) return false;
    const encodable = mayEncode(exchange, this.types);
    // A 304 carries the Vary of its 200 (RFC 9110 section 15.4.5), but no longer the type that would tell.
    if (encodable || exchange.status === 304) {
      const given = exchange.header('vary');
      if (given !== VARY) exchange.set('vary', varyWithAcceptEncoding(given));
    }
    return encodable;
  }

  private lookUp(exchange: Exchange, body: Body, route: RouteCompression): CachedBody | null {
    if (!this.parts.contentCache || route.off || this.isSmall(body)) return null;
    if (!mayKeep(exchange, exchange.method) || !mayEncode(exchange, this.types) || !route.gate.admits()) return null;
    const known = this.parts.cache.find(body);
    route.gate.looked(known !== null);
    if (known === null) return this.parts.cache.add(body);
    this.hit(route);
    route.repeated.repeated(known);
    return known;
  }

  private represent(
    exchange: Exchange,
    body: Body,
    entry: CachedBody | null,
    route: RouteCompression,
    deliver: Deliver,
  ): void {
    const wished = this.choose(exchange, route);
    const coding = wished === null || this.isSmall(body) ? null : wished;
    const condition = new ConditionalResponse(exchange, body, entry);
    const finish = (encoded: Encoded | null): void => {
      if (condition.settle(encoded === null ? null : coding, encoded?.level ?? 0)) return deliver(null);
      if (encoded === null) {
        if (entry !== null) exchange.set('content-length', entry.byteLength);
        return deliver(body);
      }
      markEncoded(exchange, coding!);
      exchange.set('content-length', encoded.bytes.byteLength);
      this.streamed(route, entry?.byteLength ?? Buffer.byteLength(body), encoded.bytes.byteLength);
      deliver(encoded.bytes);
    };
    if (coding === null) return finish(null);
    if (condition.settleEarly(coding)) return deliver(null);
    const unencoded = (error: unknown): void => {
      this.failed(error);
      finish(null);
    };
    let encoded: Encoded | null | Promise<Encoded | null>;
    try {
      encoded = this.encode(exchange, body, entry, coding);
    } catch (error) {
      return unencoded(error);
    }
    if (encoded instanceof Promise) encoded.then(finish, unencoded);
    else finish(encoded);
  }

  private encode(
    exchange: Exchange,
    body: Body,
    entry: CachedBody | null,
    coding: ContentCoding,
  ): Encoded | null | Promise<Encoded | null> {
    const { compressor } = this.parts;
    if (entry !== null) return entry.encoded(coding, compressor, exchange.shared !== null);
    return compressor.encode(coding, bytesOf(body), 'once', () => !exchange.gone);
  }

  /** Below the threshold a coding gains nothing: the response is one segment either way. */
  private isSmall(body: Body): boolean {
    const { thresholdBytes } = this.parts;
    if (body.length >= thresholdBytes) return false;
    // A character has at most three bytes in UTF-8.
    return body.length * 3 < thresholdBytes || Buffer.byteLength(body) < thresholdBytes;
  }

  private seen(route: RouteCompression): void {
    this.totals.responses += 1;
    route.counters.responses += 1;
  }

  private hit(route: RouteCompression): void {
    this.totals.cacheHits += 1;
    route.counters.cacheHits += 1;
  }
}

function markEncoded(exchange: Exchange, coding: ContentCoding): void {
  exchange.set('content-encoding', coding);
  // Ranges would count bytes of the encoded representation, which the application cannot serve.
  exchange.remove('accept-ranges');
}
