import { attach } from '../core/attachment.js';
import type { RequestState } from '../core/request-state.js';
import type { KeptResponse, SharedFlight } from './shared-response/shared-flight.js';
import type { SharedRoute } from './shared-response/shared-route.js';

/** Lookups that are judged together. */
const WINDOW = 16;
/** Fewer hits than this in a window (12.5 %) close the gate. */
const MIN_HITS = 2;
/** Responses that then pass the cache by, before the route gets another window. */
const CLOSED_FOR = 256;

/** Keeps routes whose bodies are all different, one for each user for example, from paying for a cache that cannot help them. */
export class AdmissionGate {
  private lookups = 0;
  private hits = 0;
  private closedFor = 0;

  /** Whether this response may use the cache. Counts it. */
  admits(): boolean {
    if (this.closedFor === 0) return true;
    this.closedFor -= 1;
    return false;
  }

  /** Tells the outcome of a lookup. */
  looked(hit: boolean): void {
    this.lookups += 1;
    if (hit) this.hits += 1;
    if (this.lookups < WINDOW) return;
    if (this.hits < MIN_HITS) this.closedFor = CLOSED_FOR;
    this.lookups = 0;
    this.hits = 0;
  }
}

/** Counters of compression, for one route or for all. Bytes are those of encoded responses, before and after. */
export class CompressionCounters {
  responses = 0;
  compressed = 0;
  cacheHits = 0;
  bytesIn = 0;
  bytesOut = 0;

  /** Counts an encoded response. */
  encoded(bytesIn: number, bytesOut: number): void {
    this.compressed += 1;
    this.bytesIn += bytesIn;
    this.bytesOut += bytesOut;
  }
}

/** What compression keeps for a route. */
export class RouteCompression {
  readonly gate = new AdmissionGate();
  readonly counters = new CompressionCounters();

  constructor(
    /** `@NoCompression()` stands on the handler or its class. */
    readonly off: boolean,
    /** What `@SharedResponse()` keeps; null without it. */
    readonly shared: SharedRoute | null,
  ) {}
}

export const ROUTE_COMPRESSION = attach<RouteCompression>('route');
/** The shared answer that a request makes or gets; null for an answer of its own. */
export const SHARED_ANSWER = attach<SharedFlight | KeptResponse>('request');

/** What compression keeps for a request's route; null where it does not know it. */
export function compressionOf(state: RequestState | null): RouteCompression | null {
  const route = state?.route ?? null;
  return route === null ? null : ROUTE_COMPRESSION.get(route);
}
