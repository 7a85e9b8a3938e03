import { BUCKETS, CELLS, COLUMN, type Cell, type Outcome } from './cells.js';
import type { VariantTotals } from './experiment-totals.js';
import type { PrePeriod } from './pre-period.js';
import { UnitBitmap } from './unit-bitmap.js';

const STRIDE = CELLS.length;

/** One variant of one gate on one route: sums per bucket of units, and the units counted. 32 KiB, whatever comes. */
export class VariantTally {
  private readonly cells = new Float64Array(BUCKETS * STRIDE);
  private readonly units = UnitBitmap.empty();

  /** `unitHash` has 32 bits. The unit's pre-period is added with its first request. */
  add(unitHash: number, outcome: Outcome, before: PrePeriod | null): void {
    const at = (unitHash % BUCKETS) * STRIDE;
    if (this.units.add(unitHash) && before !== null) {
      const { count, sumMs } = before.of(unitHash);
      this.increase(at, 'beforeSucceeded', count);
      this.increase(at, 'beforeSucceededMs', sumMs);
    }
    if (outcome.aborted) {
      this.increase(at, 'aborted', 1);
      return;
    }
    this.increase(at, 'completed', 1);
    this.increase(at, 'blockedMs', outcome.blockedMs);
    if (outcome.failed) this.increase(at, 'errors', 1);
    if (!outcome.succeeded) return;
    this.increase(at, 'succeeded', 1);
    this.increase(at, 'succeededMs', outcome.durationMs);
  }

  totals(): VariantTotals {
    const buckets: number[][] = [];
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const sums = this.cells.subarray(bucket * STRIDE, (bucket + 1) * STRIDE);
      if (sums.some((sum) => sum !== 0)) buckets.push([bucket, ...sums]);
    }
    return { units: this.units.toString(), buckets };
  }

  private increase(at: number, cell: Cell, by: number): void {
    this.cells[at + COLUMN[cell]]! += by;
  }
}
