import { settleAll } from '../../core/settle-all.js';
import type { Compressor } from '../codec.js';
import type { MonotonicClock } from '../../core/clock.js';
import type { RequestUnits } from '../../request/request-unit.js';
import type { Body, CachedBody, ContentCache } from '../content-cache.js';
import {
  hasMember,
  isEncoded,
  listValue,
  mayKeep,
  readArgument,
  splitMembers,
  type FieldValue,
  type ResponseHead,
} from '../rules/policy.js';

/** Response headers by name. */
export type Headers = Readonly<Record<string, FieldValue>>;
type KeptHeader = readonly [string, string | number | readonly string[]];

/** An answer that serves later requests. */
export class KeptResponse {
  constructor(
    readonly entry: CachedBody,
    /** Set by the handler and its interceptors. Headers set before them are not kept: each request gets its own. */
    readonly headers: readonly KeptHeader[],
    /** Monotonic milliseconds. */
    readonly expiresMs: number,
    /** How long it serves while the next answer is made, monotonic milliseconds. */
    readonly staleUntilMs: number,
    /** Its headers allow it for callers with a sign too. */
    private readonly isPublic: boolean,
    /** Monotonic milliseconds; null when its headers give it no lifetime, and so no age. */
    private readonly bornMs: number | null,
  ) {}

  /** `Age`, seconds: without it a cache behind this one would keep the answer for too long (RFC 9111 section 5.1). */
  ageAt(nowMs: number): number | null {
    return this.bornMs === null ? null : Math.floor((nowMs - this.bornMs) / 1_000);
  }

  serves(sign: CallerSign | null): boolean {
    return this.isPublic || sign === null;
  }
}

interface SharedHead extends ResponseHead {
  readonly method: string;
  headers(): Headers;
}

/** Shows who calls: a header, or the option `unit`. A caller with a sign gets an answer of its own, unless that is public. */
export type CallerSign = 'Authorization' | 'Cookie' | 'unit';

/** Parts of the application that its routes use. */
export interface SharedRouteHost {
  readonly cache: ContentCache;
  readonly nowMs: MonotonicClock;
  readonly units: Pick<RequestUnits, 'isForSomebody'>;
  /** Logs once why an answer of this route is not shared. */
  notShared(this: void, reason: string): void;
  /** Logs once that callers with a sign get answers of their own. */
  ownAnswerGiven(this: void, sign: CallerSign): void;
}

/** The part of a route that a flight uses. */
interface FlightRoute {
  readonly host: SharedRouteHost;
  readonly ttlMs: number;
  readonly varies: boolean;
  keepBody(flight: SharedFlight, body: Body, headers: readonly KeptHeader[]): CachedBody | null;
  free(flight: SharedFlight, kept?: KeptResponse | null): void;
  replace(flight: SharedFlight, kept: KeptResponse): void;
}

type Result = KeptResponse | 'not-shareable' | 'abandoned' | 'late';

/** One run of the handler while other requests wait for its answer (single flight). Ends exactly once. */
export class SharedFlight {
  readonly result: Promise<Result>;
  private resolve!: (result: Result) => void;
  private isOpen = true;
  private kept: KeptResponse | null = null;
  private readonly deadline: NodeJS.Timeout;

  constructor(
    private readonly route: FlightRoute,
    readonly key: string,
    readonly previous: KeptResponse | null,
    private readonly headersBefore: Headers,
    /** With a sign, the answer serves others only if it is public. */
    private readonly sign: CallerSign | null,
    /** Requests wait until then, monotonic milliseconds. */
    readonly lateMs: number,
  ) {
    this.result = new Promise((resolve) => (this.resolve = resolve));
    this.deadline = setTimeout(() => this.releaseWaiters(), lateMs - route.host.nowMs()).unref();
  }

  /** Keeps an answer that may serve others, and returns its cache entry; else ends the flight, and returns null. */
  keep(head: SharedHead, body: Body): CachedBody | null {
    if (!this.isOpen) return null;
    const { route } = this;
    const mayServe = this.mayServeOthers(head);
    const headers = this.listChanged(head);
    const entry = mayServe ? route.keepBody(this, body, headers) : null;
    if (entry === null) {
      if (mayServe) route.host.notShared('its body does not fit into `compression.cache.maxBytes`');
      this.end('not-shareable');
      return null;
    }
    const control = head.header('cache-control');
    const freshMs = readFreshMs(control);
    const now = route.host.nowMs();
    const expiresMs = now + Math.min(route.ttlMs, freshMs);
    const bornMs = freshMs === Number.POSITIVE_INFINITY ? null : now;
    const staleMs = MUST_BE_FRESH.some((member) => hasMember(control, member)) ? 0 : route.ttlMs;
    this.kept = new KeptResponse(entry, headers, expiresMs, expiresMs + staleMs, isForAll(control), bornMs);
    this.isOpen = false;
    return entry;
  }

  /** Replaces the previous answer once the new one has the same encodings: until then the previous one serves, and no request waits. */
  async publish(compressor: Compressor): Promise<void> {
    const { kept, previous } = this;
    if (kept === null) return;
    const codings = new Set([...kept.entry.codings, ...(previous?.entry.codings ?? [])]);
    // A failing compressor is reported where the body is sent; the answer itself is fine.
    await settleAll([...codings].map(async (coding) => kept.entry.encode(coding, compressor, true)));
    this.end(kept);
  }

  /** The response is over and nothing was kept: a stream, or a client that left before the handler had answered. */
  close(answered: boolean): void {
    if (!this.isOpen) return;
    if (answered) this.route.host.notShared('it is a stream, or was written around the framework');
    this.end(answered ? 'not-shareable' : 'abandoned');
  }

  /** The handler goes on: its late answer still serves later requests. */
  private releaseWaiters(): void {
    this.route.free(this);
    this.resolve('late');
  }

  private end(result: Exclude<Result, 'late'>): void {
    this.isOpen = false;
    clearTimeout(this.deadline);
    if (typeof result === 'string') this.route.free(this, this.kept);
    else this.route.replace(this, result);
    this.resolve(result);
  }

  private mayServeOthers(head: SharedHead): boolean {
    const control = head.header('cache-control');
    if (!mayKeep(head, head.method) || isEncoded(head) || hasMember(control, 'no-cache') || readFreshMs(control) <= 0) {
      if (head.status === 200) {
        this.route.host.notShared('it has `Set-Cookie`, a coding of its own, or a `Cache-Control` against it');
      }
      return false;
    }
    if (!this.coversVary(head.header('vary'))) return false;
    if (this.sign === null || isForAll(control)) return true;
    this.route.host.ownAnswerGiven(this.sign);
    return false;
  }

  /** An answer that varies with a request header needs `varyBy`, whichever layer has set `Vary`. */
  private coversVary(vary: FieldValue): boolean {
    if (this.route.varies) return !listValue(vary).includes('*');
    const before = this.headersBefore['vary'];
    const named = splitMembers(listValue(vary)).filter((member) => member !== 'accept-encoding');
    // Members that CORS has set before the handler name headers that each request gets for itself.
    if (named.every((member) => CORS_MEMBERS.has(member) && hasMember(before, member))) return true;
    this.route.host.notShared('its `Vary` header names request headers: give `@SharedResponse()` a `varyBy`');
    return false;
  }

  /** Headers that were set or changed since the handler began, and all that describe the body. */
  private listChanged(head: SharedHead): readonly KeptHeader[] {
    const kept: KeptHeader[] = [];
    for (const [name, value] of Object.entries(head.headers())) {
      if (value === undefined || name === 'transfer-encoding' || name === 'content-length') continue;
      const before = this.headersBefore[name];
      if (name === 'vary') {
        const added = splitMembers(value).filter((member) => !hasMember(before, member.toLowerCase()));
        if (added.length > 0) kept.push([name, added.join(', ')]);
      } else if (DESCRIBES_BODY.test(name) || String(before) !== String(value)) kept.push([name, value]);
    }
    return kept;
  }
}

/** https://fetch.spec.whatwg.org/#cors-protocol-and-http-caches */
const CORS_MEMBERS: ReadonlySet<string> = new Set([
  'origin',
  'access-control-request-method',
  'access-control-request-headers',
  'access-control-request-private-network',
]);

/** These describe the body: kept even when they were set before the handler. */
const DESCRIBES_BODY = /^(?:content-(?!security-policy|length)|cache-control$|etag$|expires$|last-modified$)/;

/** These forbid stale answers of shared caches (RFC 9111 sections 5.2.2.2, 5.2.2.8, 5.2.2.10). */
const MUST_BE_FRESH = ['must-revalidate', 'proxy-revalidate', 's-maxage'];

/** Freshness lifetime by the answer's own `Cache-Control` (RFC 9111 section 4.2.1), milliseconds. */
function readFreshMs(control: FieldValue): number {
  const given = readArgument(control, 's-maxage') ?? readArgument(control, 'max-age');
  if (given === undefined) return Number.POSITIVE_INFINITY;
  const seconds = Number(given);
  return Number.isNaN(seconds) ? 0 : seconds * 1000;
}

/** Whether the answer to a caller with a sign may serve others (RFC 9111 section 3.5). */
const isForAll = (control: FieldValue): boolean => hasMember(control, 'public') || hasMember(control, 's-maxage');
