/** Slots that units share: 8,192 of them are 64 KiB a route. More units than that blur the pre-period, never bias it. */
const SLOTS = 8_192;

/** Latency of a route's units while every gate was still off: what CUPED takes off later. */
export class PrePeriod {
  private readonly counts = new Float32Array(SLOTS);
  private readonly sumsMs = new Float32Array(SLOTS);

  add(unitHash: number, durationMs: number): void {
    const slot = unitHash % SLOTS;
    this.counts[slot]! += 1;
    this.sumsMs[slot]! += durationMs;
  }

  of(unitHash: number): { count: number; sumMs: number } {
    const slot = unitHash % SLOTS;
    return { count: this.counts[slot]!, sumMs: this.sumsMs[slot]! };
  }
}
