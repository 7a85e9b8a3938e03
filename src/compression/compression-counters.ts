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
