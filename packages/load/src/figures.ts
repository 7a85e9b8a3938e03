/** Latencies of one run, each from the time at which its request was to start, milliseconds. */
export class Latencies {
  private readonly values: number[] = [];
  private sorted: Float64Array | null = null;

  add(ms: number): void {
    this.values.push(ms);
    this.sorted = null;
  }

  get count(): number {
    return this.values.length;
  }

  /** Nearest rank, 0 < q <= 1; NaN of none. */
  quantile(q: number): number {
    this.sorted ??= Float64Array.from(this.values).sort();
    return this.sorted[Math.max(0, Math.ceil(q * this.sorted.length) - 1)] ?? NaN;
  }

  figures(): LatencyFigures {
    const [p50, p90, p95, p99, p999, max] = [0.5, 0.9, 0.95, 0.99, 0.999, 1].map((q) => this.quantile(q)) as [
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    const mean = this.values.reduce((sum, value) => sum + value, 0) / this.values.length;
    return { mean, p50, p90, p95, p99, 'p99.9': p999, max };
  }
}

export interface LatencyFigures {
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  readonly 'p99.9': number;
  readonly max: number;
}
