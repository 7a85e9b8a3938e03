import type { MonotonicClock } from '../../core/clock.js';
import type { Body, CachedBody } from '../cache/cached-body.js';
import type { Compressor } from '../codec/compressor.js';
import type { ContentCache } from '../cache/content-cache.js';
import type { Exchange } from '../exchange.js';
import { listValue, type FieldValue } from '../rules/field-value.js';
import { isEncoded, mayKeep } from '../rules/policy.js';

/** `@SharedResponse()`'s options. */
export interface SharedResponseOptions {
  /** For so long one answer serves every caller of one URL, milliseconds. */
  ttlMs: number;
  /** What else the answer depends on: callers that get different strings get different answers. */
  varyBy?: (request: any) => string;
}

/** Response headers by name. */
export type Headers = Readonly<Record<string, FieldValue>>;

/** An answer that serves others. */
export class KeptResponse {
  constructor(
    readonly entry: CachedBody,
    /** The headers that the handler and its interceptors have set; those that were there before it belong to each request. */
    readonly headers: readonly (readonly [string, string | number | readonly string[]])[],
    /** Monotonic milliseconds. */
    readonly expiresMs: number,
  ) {}
}

interface Slot {
  kept: KeptResponse | null;
  flight: SharedFlight | null;
}

/** What a request that found no answer is told. */
export type Admission =
  | { readonly kind: 'kept'; readonly kept: KeptResponse }
  /** Run the handler; its answer may serve others. */
  | { readonly kind: 'lead'; readonly flight: SharedFlight }
  /** Run the handler for this request alone. */
  | { readonly kind: 'alone' };

/**
 * The shared answers of one route. One request at a time runs the handler for a key; the others wait for it, or, while an
 * expired answer is being refreshed, get that one (for at most another TTL).
 */
export class SharedRoute {
  private readonly slots = new Map<string, Slot>();

  constructor(
    private readonly options: SharedResponseOptions,
    private readonly nowMs: MonotonicClock,
    /** Says once why an answer of this route is not shared. */
    private readonly notShared: (reason: string) => void,
  ) {}

  /**
   * Synchronous where an answer is there: the way of nearly every request.
   * @throws what `varyBy` throws
   */
  admit(method: string, url: string, request: unknown, headers: () => Headers): Admission | Promise<Admission> {
    const { varyBy } = this.options;
    // A space ends a request target, so no two different triples make one key.
    const key = varyBy === undefined ? `${method} ${url}` : `${method} ${url} ${varyBy(request)}`;
    return this.find(key, headers) ?? this.wait(key, headers);
  }

  /** What is known now; null while the only answer is being made. */
  private find(key: string, headers: () => Headers): Admission | null {
    const slot = this.slots.get(key);
    const kept = slot?.kept ?? null;
    const flight = slot?.flight ?? null;
    if (kept !== null) {
      const now = this.nowMs();
      if (now < kept.expiresMs) return { kind: 'kept', kept };
      if (flight !== null && now < kept.expiresMs + this.options.ttlMs) return { kind: 'kept', kept };
    }
    return flight === null ? { kind: 'lead', flight: this.lead(key, kept, headers()) } : null;
  }

  private async wait(key: string, headers: () => Headers): Promise<Admission> {
    for (;;) {
      const result = await this.slots.get(key)?.flight?.result;
      if (result === 'not-shareable') return { kind: 'alone' };
      if (result instanceof KeptResponse) return { kind: 'kept', kept: result };
      // Its client has left: look again, and perhaps lead.
      const found = this.find(key, headers);
      if (found !== null) return found;
    }
  }

  private lead(key: string, previous: KeptResponse | null, headersBefore: Headers): SharedFlight {
    const flight = new SharedFlight(previous, headersBefore, {
      expiresMs: () => this.nowMs() + this.options.ttlMs,
      varies: this.options.varyBy !== undefined,
      notShared: this.notShared,
      ended: (kept) => this.landed(key, kept),
    });
    const slot = this.slots.get(key);
    if (slot === undefined) this.slots.set(key, { kept: previous, flight });
    else slot.flight = flight;
    return flight;
  }

  private landed(key: string, kept: KeptResponse | null): void {
    const slot = this.slots.get(key);
    if (slot === undefined) return;
    slot.flight = null;
    if (kept !== null) {
      if (slot.kept !== null) slot.kept.entry.onEvicted = null;
      slot.kept = kept;
      // The cache decides what stays: an evicted body takes its slot along, so hostile URLs cannot grow this map.
      kept.entry.onEvicted = () => this.drop(key, kept);
    } else if (slot.kept === null) this.slots.delete(key);
  }

  private drop(key: string, kept: KeptResponse): void {
    const slot = this.slots.get(key);
    if (slot?.kept !== kept) return;
    slot.kept = null;
    if (slot.flight === null) this.slots.delete(key);
  }
}

interface FlightParts {
  expiresMs(): number;
  readonly varies: boolean;
  notShared(reason: string): void;
  ended(kept: KeptResponse | null): void;
}

/** One run of the handler whose answer others wait for. Ends exactly once. */
export class SharedFlight {
  readonly result: Promise<KeptResponse | 'not-shareable' | 'abandoned'>;
  private resolve!: (result: KeptResponse | 'not-shareable' | 'abandoned') => void;
  private phase: 'flying' | 'publishing' | 'ended' = 'flying';

  constructor(
    private readonly previous: KeptResponse | null,
    private readonly headersBefore: Headers,
    private readonly parts: FlightParts,
  ) {
    this.result = new Promise((resolve) => (this.resolve = resolve));
  }

  /** Takes the answer, if it may serve others; null ends the flight. */
  keep(exchange: Exchange, body: Body, cache: ContentCache): KeptResponse | null {
    if (this.phase !== 'flying') return null;
    if (!mayKeep(exchange, exchange.method) || isEncoded(exchange) || !this.coversVary(exchange.header('vary'))) {
      this.end('not-shareable');
      return null;
    }
    const entry = cache.find(body) ?? cache.add(body);
    if (entry === null) {
      this.parts.notShared('its body does not fit into `compression.cache.maxBytes`');
      this.end('not-shareable');
      return null;
    }
    this.phase = 'publishing';
    return new KeptResponse(entry, this.changed(exchange.headers()), this.parts.expiresMs());
  }

  /**
   * Gives the answer to everybody once it is encoded as its predecessor was: until then the predecessor is served, so that
   * nobody waits for a compression.
   */
  async publish(kept: KeptResponse, compressor: Compressor): Promise<void> {
    const codings = new Set([...kept.entry.codings, ...(this.previous?.entry.codings ?? [])]);
    // A failing compressor is reported where the body is sent; the answer itself is fine.
    await Promise.allSettled([...codings].map(async (coding) => kept.entry.encoded(coding, compressor, true)));
    this.end(kept);
  }

  /** The answer has no body. */
  refuse(): void {
    if (this.phase === 'flying') this.end('not-shareable');
  }

  /** The response is over and nothing was kept: a stream, or a client that left before the handler had answered. */
  close(answered: boolean): void {
    if (this.phase !== 'flying') return;
    if (answered) this.parts.notShared('it is a stream, or was written around the framework');
    this.end(answered ? 'not-shareable' : 'abandoned');
  }

  private end(result: KeptResponse | 'not-shareable' | 'abandoned'): void {
    this.phase = 'ended';
    this.parts.ended(typeof result === 'string' ? null : result);
    this.resolve(result);
  }

  /** A handler that says its answer varies with a request header needs `varyBy`. */
  private coversVary(vary: FieldValue): boolean {
    if (this.parts.varies) return !listValue(vary).includes('*');
    const before = listValue(this.headersBefore['vary']);
    const added = listValue(vary)
      .split(',')
      .map((member) => member.trim())
      .filter((member) => member !== '' && member !== 'accept-encoding' && !before.includes(member));
    if (added.length === 0) return true;
    this.parts.notShared('its `Vary` header names request headers: give `@SharedResponse()` a `varyBy`');
    return false;
  }

  private changed(headers: Headers): KeptResponse['headers'] {
    const kept: [string, string | number | readonly string[]][] = [];
    for (const [name, value] of Object.entries(headers)) {
      if (value === undefined || name === 'content-length' || name === 'transfer-encoding') continue;
      if (String(this.headersBefore[name]) !== String(value)) kept.push([name, value]);
    }
    return kept;
  }
}
