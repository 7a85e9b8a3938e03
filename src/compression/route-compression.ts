import type { RequestState } from '../request/request-state.js';

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

/** Responses in a row without a hit in the cache, after which `PASSES` responses bypass it. */
const MISSES = 16;
const PASSES = 256;

/** Compression's state of a route. */
export class RouteCompression {
  /** Responses since a body of the route came again. */
  private responses = 0;
  readonly counters = new CompressionCounters();

  /** `off`: its responses are sent without a content coding. */
  constructor(readonly off = false) {}

  /** Whether this response may use the cache; counts it. Bodies that all differ, one for each user for example, do not pay for it. */
  mayRepeat(): boolean {
    return this.responses++ % (MISSES + PASSES) < MISSES;
  }

  /** A body of it was in the cache. */
  repeats(): void {
    this.responses = 0;
  }
}

/** The module's own paths, such as `/metrics`: they are encoded, and not counted. */
const OWN_PATHS = new RouteCompression();

/** Compression's state of a request's route; null where the route is unknown. */
export function compressionOf(state: RequestState | null): RouteCompression | null {
  const route = state?.route ?? null;
  return route === null ? null : ((route.compression as RouteCompression | null) ?? OWN_PATHS);
}
