import { attach } from '../core/attachment.js';
import type { RequestState } from '../core/request-state.js';
import type { KeptResponse, SharedFlight } from './shared-response/shared-flight.js';
import type { SharedRoute } from './shared-response/shared-route.js';

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

  add({ responses, compressed, cacheHits, bytesIn, bytesOut }: CompressionCounters): void {
    this.responses += responses;
    this.compressed += compressed;
    this.cacheHits += cacheHits;
    this.bytesIn += bytesIn;
    this.bytesOut += bytesOut;
  }
}

/** Where so many responses on end found no body in the cache, so many more pass it by. */
const MISSES = 16;
const PASSES = 256;

/** What compression keeps for a route. */
export class RouteCompression {
  /** Since a body of it came again. */
  private responses = 0;
  readonly counters = new CompressionCounters();

  constructor(
    /** `@NoCompression()` stands on the handler or its class. */
    readonly off: boolean,
    /** What `@SharedResponse()` keeps; null without it. */
    readonly shared: SharedRoute | null,
  ) {}

  /** Whether this response may use the cache; counts it. Bodies that all differ, one for each user for example, do not pay for it. */
  mayRepeat(): boolean {
    return this.responses++ % (MISSES + PASSES) < MISSES;
  }

  /** A body of it was in the cache. */
  repeats(): void {
    this.responses = 0;
  }
}

export const ROUTE_COMPRESSION = attach<RouteCompression>('route');
/** The shared answer that a request makes or gets; null for an answer of its own. */
export const SHARED_ANSWER = attach<SharedFlight | KeptResponse>('request');

/** Of the module's own paths, such as `/metrics`: they are encoded, and no figure counts them. */
const OWN_PATHS = new RouteCompression(false, null);

/** What compression keeps for a request's route; null where it does not know it. */
export function compressionOf(state: RequestState | null): RouteCompression | null {
  const route = state?.route ?? null;
  return route === null ? null : (ROUTE_COMPRESSION.get(route) ?? OWN_PATHS);
}
