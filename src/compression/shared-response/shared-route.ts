import { describe } from '../../core/option.js';
import { PerfError } from '../../core/perf.error.js';
import type { PerfRequest } from '../../core/perf-request.js';
import type { Body, CachedBody } from '../content-cache.js';
import { KeptResponse, SharedFlight, type CallerSign, type Headers, type SharedRouteHost } from './shared-flight.js';

/** `@SharedResponse()`'s options. */
export interface SharedResponseOptions {
  /** For so long one answer serves every caller of one URL, milliseconds; or for its own `s-maxage` or `max-age`, if that is shorter. */
  ttlMs: number;
  /** Returns what else the answer depends on: callers that get different strings get different answers. */
  varyBy?(this: void, request: PerfRequest): string;
  /**
   * Whether known callers share too. A request with `Authorization`, `Cookie` or somebody for `unit` gets an answer of its own
   * without this, unless the answer is `public` or has `s-maxage`, or there is a `varyBy`.
   * @default false
   */
  forEveryone?: boolean;
  /**
   * Longest that a request waits for the answer that another one makes, milliseconds. Then it runs the handler itself.
   * @default 10000
   */
  waitMs?: number;
}

const WAIT_MS = 10_000;
/** Size of a slot beside its texts, bytes. */
const SLOT_BYTES = 512;

interface Slot {
  kept: KeptResponse | null;
  flight: SharedFlight | null;
}

/** The request, as far as its route needs to know it. */
export interface Caller {
  /** Path and query as sent, and as routed where middleware has rewritten them. */
  readonly urls: readonly unknown[];
  /** The host as sent, and as proxies forward it. */
  readonly hosts: readonly unknown[];
  /** The framework's request, for `varyBy`. */
  readonly request: unknown;
  /** Response headers that are there before the handler. */
  headers(): Headers;
  /** Null for an anonymous caller. */
  sign(): CallerSign | null;
  gone(): boolean;
}

export type Admission =
  | { readonly kind: 'kept'; readonly kept: KeptResponse }
  /** Run the handler; its answer may serve others. */
  | { readonly kind: 'lead'; readonly flight: SharedFlight }
  /** Run the handler for this request alone. */
  | { readonly kind: 'alone' }
  /** The client has left: no answer is needed. */
  | { readonly kind: 'gone' };

/**
 * The shared answers of one route, by key: one request runs the handler, the others wait for its answer (single flight). While an
 * expired answer is renewed, they get that one, for at most another TTL (stale while revalidate).
 */
export class SharedRoute {
  private readonly slots = new Map<string, Slot>();
  readonly ttlMs: number;
  readonly waitMs: number;
  /** There is a `varyBy`. */
  readonly varies: boolean;

  constructor(
    private readonly options: SharedResponseOptions,
    readonly host: SharedRouteHost,
  ) {
    this.ttlMs = options.ttlMs;
    this.waitMs = options.waitMs ?? WAIT_MS;
    this.varies = options.varyBy !== undefined;
  }

  /** @throws what `varyBy` throws, and PERF_ERR_DECORATOR when it returns no string */
  async admit(caller: Caller): Promise<Admission> {
    const sign = this.readSign(caller);
    const key = this.writeKey(caller);
    let lateMs = this.host.nowMs() + this.waitMs;
    for (;;) {
      const found = this.find(key, caller, sign, lateMs);
      if (found !== null) return found;
      const flight = this.slots.get(key)!.flight!;
      const result = await flight.result;
      // A waiter of an abandoned flight may lead the next one. The deadline stays: two flights last no longer than one.
      lateMs = flight.lateMs;
      if (caller.gone()) return { kind: 'gone' };
      if (result === 'not-shareable') return { kind: 'alone' };
      if (result === 'late') {
        this.host.notShared(
          `its handler took more than ${this.waitMs} ms, so requests that waited for it ran it themselves`,
        );
        return { kind: 'alone' };
      }
      if (result instanceof KeptResponse && result.serves(sign)) return { kind: 'kept', kept: result };
    }
  }

  /** JSON keeps the parts apart: different requests never make the same key. */
  private writeKey({ hosts, urls, request }: Caller): string {
    const { varyBy } = this.options;
    const variant = varyBy === undefined ? [] : [requireText(varyBy(request as PerfRequest))];
    return JSON.stringify(hosts).toLowerCase() + JSON.stringify([urls, ...variant]);
  }

  /** Null while the only answer is being made. */
  private find(key: string, caller: Caller, sign: CallerSign | null, lateMs: number): Admission | null {
    const { kept = null, flight = null } = this.slots.get(key) ?? {};
    const lead = (): Admission => ({ kind: 'lead', flight: this.openFlight(key, caller, kept, sign, lateMs) });
    if (sign !== null && kept?.serves(sign) !== true) return lead();
    if (kept !== null) {
      const now = this.host.nowMs();
      if (now < kept.expiresMs) return { kind: 'kept', kept };
      if (flight !== null && now < kept.staleUntilMs) return { kind: 'kept', kept };
    }
    return flight === null ? lead() : null;
  }

  /** Null where the options let all callers share. */
  private readSign(caller: Caller): CallerSign | null {
    return this.varies || this.options.forEveryone === true ? null : caller.sign();
  }

  /** Others wait for the flight of a caller with a sign only if the previous answer was public: this one is probably, too. */
  private openFlight(
    key: string,
    caller: Caller,
    previous: KeptResponse | null,
    sign: CallerSign | null,
    lateMs: number,
  ): SharedFlight {
    const flight = new SharedFlight(this, key, previous, caller.headers(), sign, lateMs);
    if (sign !== null && previous?.serves(sign) !== true) return flight;
    const slot = this.slots.get(key);
    if (slot === undefined) this.slots.set(key, { kept: previous, flight });
    else slot.flight = flight;
    return flight;
  }

  /** Reuses the previous answer's entry when the body is equal. Null when it does not fit. */
  keepBody({ key, previous }: SharedFlight, body: Body, headers: KeptResponse['headers']): CachedBody | null {
    const { cache } = this.host;
    if (previous !== null && cache.has(previous.entry) && previous.entry.matches(body)) return previous.entry;
    const headerBytes = headers.reduce((sum, [name, value]) => sum + name.length + String(value).length, 0);
    // An evicted body removes its slot: hostile URLs cannot grow the map beyond the cache.
    return cache.addShared(body, SLOT_BYTES + 2 * (key.length + headerBytes), (evicted) => {
      const slot = this.slots.get(key);
      if (slot?.kept?.entry !== evicted) return;
      slot.kept = null;
      this.dropEmpty(key, slot);
    });
  }

  free(flight: SharedFlight, kept: KeptResponse | null = null): void {
    const { key } = flight;
    const slot = this.slots.get(key);
    if (slot?.flight === flight) {
      slot.flight = null;
      this.dropEmpty(key, slot);
    }
    if (kept !== null && kept.entry !== slot?.kept?.entry) this.host.cache.evict(kept.entry);
  }

  /** Keeps the answer of a flight, unless a newer flight has ended before it. */
  replace(flight: SharedFlight, kept: KeptResponse): void {
    const { key, previous } = flight;
    const slot = this.slots.get(key) ?? { kept: null, flight: null };
    const isNewest = slot.kept === null || slot.kept === previous;
    if (!isNewest || !this.host.cache.has(kept.entry)) return this.free(flight, kept);
    const before = slot.kept?.entry;
    slot.kept = kept;
    if (slot.flight === flight) slot.flight = null;
    this.slots.set(key, slot);
    if (before !== undefined && before !== kept.entry) this.host.cache.evict(before);
  }

  private dropEmpty(key: string, { kept, flight }: Slot): void {
    if (kept === null && flight === null) this.slots.delete(key);
  }
}

/** Two users must not share the key `[object Object]`. */
function requireText(key: unknown): string {
  if (typeof key === 'string') return key;
  throw new PerfError(
    'PERF_ERR_DECORATOR',
    `\`varyBy\` of @SharedResponse() must return a string, got ${describe(key)}. Return what the answer depends on, for example \`request.user.id\`.`,
  );
}
