import type { RequestState } from '../request/request-state.js';

/** Counters of compression, for one route or for all. Bytes are those of encoded responses, before and after. */
export class CompressionCounters {
  responses = 0;
  compressed = 0;
  cacheHits = 0;
  bytesIn = 0;
  bytesOut = 0;

  addEncoded(bytesIn: number, bytesOut: number): void {
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

/** The module's own paths, such as `/metrics`: they are encoded, and not counted. */
const OWN_PATHS = new CompressionCounters();

/** The counters of a request's route; null where the route is unknown. */
export function findCounters({ route }: RequestState): CompressionCounters | null {
  return route === null ? null : ((route.compression as CompressionCounters | null) ?? OWN_PATHS);
}
