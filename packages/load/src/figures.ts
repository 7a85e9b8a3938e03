const QUANTILES = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99, 'p99.9': 0.999, max: 1 } as const;

/** Milliseconds; NaN of no answer, Infinity where a failed request decides. */
export type LatencyFigures = Readonly<Record<'mean' | keyof typeof QUANTILES, number>>;

/** Latencies of one run, each from the time at which its request was to start, milliseconds. */
export class Latencies {
  private readonly values: number[] = [];
  private sorted: Float64Array | null = null;

  /** Infinity of one that has failed: it ranks above all that were answered. */
  add(ms: number): void {
    this.values.push(ms);
    this.sorted = null;
  }

  /** Nearest rank, 0 < q <= 1; NaN of none. */
  quantile(q: number): number {
    this.sorted ??= Float64Array.from(this.values).sort();
    return this.sorted[Math.max(0, Math.ceil(q * this.sorted.length) - 1)] ?? NaN;
  }

  figures(): LatencyFigures {
    const mean = this.values.reduce((sum, value) => sum + value, 0) / this.values.length;
    const quantiles = Object.entries(QUANTILES).map(([name, q]) => [name, this.quantile(q)]);
    return { mean, ...(Object.fromEntries(quantiles) as Record<keyof typeof QUANTILES, number>) };
  }
}
