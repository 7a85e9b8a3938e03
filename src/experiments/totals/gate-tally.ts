import type { Row } from '../../core/statistics/ratio-mean.js';
import type { Route } from '../../request/routes.js';
import { RunningP95 } from './running-p95.js';
import { GateSplit } from './gate-split.js';
import type { VariantTotals } from './experiment-totals.js';
import { UnitBitmap } from './unit-bitmap.js';

/** Pairs of gate and route in a process: 80 KiB each. */
export const MAX_PAIRS = 100;

/** Buckets a variant's units are hashed into. Far more than the degrees of freedom that a t test can use. */
export const BUCKETS = 256;

/** The sums of a bucket, in the order of the columns of an exported row. */
export const CELLS = [
  'succeeded',
  'succeededMs',
  'completed',
  'errors',
  'blockedMs',
  'aborted',
  // Without the warm-up, weighted by the split at the time: both variants then weigh the same in every period.
  'evenSucceeded',
  'evenSucceededMs',
  'evenCompleted',
  'evenErrors',
  'evenBlockedMs',
  // Slower than the p95 of `off`; for `on`, than that with the allowance of `experiments.stop.p95`.
  'evenSlow',
] as const;
export type Cell = (typeof CELLS)[number];

export const COLUMN = Object.fromEntries(CELLS.map((cell, index) => [cell, index])) as Readonly<Record<Cell, number>>;

/** The first six cells: a time slice leaves out its own beginning. */
export const SLICE_CELLS = COLUMN.aborted + 1;

export interface Outcome {
  /** Successful: completed with a status below 400. */
  succeeded: boolean;
  failed: boolean;
  aborted: boolean;
  durationMs: number;
  blockedMs: number;
}

/** Adds a request to the first six cells of the row that begins at `at`. */
export function addOutcome(sums: Float64Array, at: number, outcome: Outcome): void {
  const increase = (cell: Cell, by: number): void => void (sums[at + COLUMN[cell]]! += by);
  if (outcome.aborted) return increase('aborted', 1);
  increase('completed', 1);
  increase('blockedMs', outcome.blockedMs);
  if (outcome.failed) increase('errors', 1);
  if (!outcome.succeeded) return;
  increase('succeeded', 1);
  increase('succeededMs', outcome.durationMs);
}

/**
 * The first requests of a variant on a route run code that is not compiled yet, and open connections: among 2,000 requests they
 * would make an interval of 8 % one of 13 %.
 */
export const WARM_UP_REQUESTS = 20;
/** A variant with 2 % of the requests has had its 20 by then; one with less, or with none, must not prolong the warm-up. */
export const MAX_WARM_UP_REQUESTS = 1_000;

const STRIDE = CELLS.length;

/** One gate on one route. */
export class GateTally {
  readonly on = new VariantTally();
  readonly off = new VariantTally();
  readonly split = new GateSplit();
  readonly p95Ms = { on: new RunningP95(), off: new RunningP95() };
  private readonly warmUp = new WarmUp();

  /** `slowerBy`: the allowance of the p95, 0.2 for 20 %. `share` is null where the gate client does not know it. */
  add(isOn: boolean, unitHash: number, outcome: Outcome, share: number | null, slowerBy = 0): void {
    const variant = isOn ? this.on : this.off;
    const isWarmUp = !outcome.aborted && this.warmUp.takes(isOn);
    const weight = this.split.weigh(isOn, share);
    const isNewUnit = variant.add(unitHash, outcome);
    this.split.add(isOn, isNewUnit, share);
    if (isWarmUp || outcome.aborted) return;
    const isSlow = outcome.succeeded && this.p95Ms.off.isExceeded(outcome.durationMs, isOn ? slowerBy : 0);
    variant.addEven(unitHash, outcome, weight, isSlow);
    if (outcome.succeeded) this.p95Ms[isOn ? 'on' : 'off'].add(outcome.durationMs);
  }
}

/**
 * The warm-up of a gate on a route. One for both variants: with one for each, a rare variant's would last longer, and only
 * its cold requests would be left out.
 */
class WarmUp {
  private on = 0;
  private off = 0;

  /** Whether the next request, one of this variant, is part of it. */
  takes(on: boolean): boolean {
    const isOver = Math.min(this.on, this.off) >= WARM_UP_REQUESTS || this.on + this.off >= MAX_WARM_UP_REQUESTS;
    if (isOver) return false;
    if (on) this.on += 1;
    else this.off += 1;
    return true;
  }
}

/** One variant of one gate on one route: sums per bucket of units, and the units counted. 40 KiB, whatever comes. */
class VariantTally {
  private readonly cells = new Float64Array(BUCKETS * STRIDE);
  private readonly units = UnitBitmap.empty();

  /** `unitHash` has 32 bits. Returns whether the unit is new. */
  add(unitHash: number, outcome: Outcome): boolean {
    addOutcome(this.cells, (unitHash % BUCKETS) * STRIDE, outcome);
    return this.units.add(unitHash);
  }

  addEven(unitHash: number, outcome: Outcome, weight: number, isSlow: boolean): void {
    const at = (unitHash % BUCKETS) * STRIDE;
    const { cells } = this;
    cells[at + COLUMN.evenCompleted]! += weight;
    cells[at + COLUMN.evenBlockedMs]! += weight * outcome.blockedMs;
    if (outcome.failed) cells[at + COLUMN.evenErrors]! += weight;
    if (!outcome.succeeded) return;
    cells[at + COLUMN.evenSucceeded]! += weight;
    cells[at + COLUMN.evenSucceededMs]! += weight * outcome.durationMs;
    if (isSlow) cells[at + COLUMN.evenSlow]! += weight;
  }

  /** Buckets of units with their sums of two cells. */
  rows(count: Cell, sum: Cell): Row[] {
    const rows: Row[] = [];
    for (let at = 0; at < this.cells.length; at += STRIDE) {
      const row = {
        count: this.cells[at + COLUMN[count]]!,
        sum: this.cells[at + COLUMN[sum]]!,
        beforeCount: 0,
        beforeSum: 0,
      };
      if (row.count > 0) rows.push(row);
    }
    return rows;
  }

  totals(): VariantTotals {
    const buckets: number[][] = [];
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const sums = this.cells.subarray(bucket * STRIDE, (bucket + 1) * STRIDE);
      if (sums.some((sum) => sum !== 0)) buckets.push([bucket, ...sums]);
    }
    return { units: this.units.toString(), buckets };
  }
}

/** Gates, and the routes of each in the order in which they came. */
export type Tallies = ReadonlyMap<string, ReadonlyMap<Route, GateTally>>;
