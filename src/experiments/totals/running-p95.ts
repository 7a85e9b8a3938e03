/** The tail beyond a p95. */
const TAIL = 0.05;
/** A step of the logarithm: larger follows sooner, smaller is steadier. */
const STEP = 0.1;
const UP = Math.exp(STEP * (1 - TAIL));
const DOWN = Math.exp(-STEP * TAIL);

/** A running estimate of the 95th percentile in one number: it rises with 5 % of the values and falls with the others. */
export class RunningP95 {
  valueMs = 0;

  add(durationMs: number): void {
    if (this.valueMs === 0) this.valueMs = durationMs;
    else this.valueMs *= durationMs > this.valueMs ? UP : DOWN;
  }

  /** Whether a duration is beyond the estimate, raised by an allowance (0.2: 20 %). */
  isExceeded(durationMs: number, allowance: number): boolean {
    return this.valueMs > 0 && durationMs > this.valueMs * (1 + allowance);
  }
}
