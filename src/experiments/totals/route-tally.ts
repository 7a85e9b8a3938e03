import { entryOf } from '../../core/entry-of.js';
import type { VariantTotals } from './experiment-totals.js';
import { UnitBitmap } from './unit-bitmap.js';

/** Buckets a variant's units are hashed into. Far more than the degrees of freedom that a t test can use. */
export const BUCKETS = 256;

/** What is summed per bucket, in this order: also the columns of a row in the exported totals. */
export const CELLS = [
  'succeeded',
  'succeededMs',
  'completed',
  'errors',
  'blockedMs',
  'aborted',
  'beforeSucceeded',
  'beforeSucceededMs',
  // How much of the cells above is the warm-up.
  'warmUpSucceeded',
  'warmUpSucceededMs',
  'warmUpCompleted',
  'warmUpBlockedMs',
] as const;
export type Cell = (typeof CELLS)[number];

export const COLUMN = Object.fromEntries(CELLS.map((cell, index) => [cell, index])) as Readonly<Record<Cell, number>>;

/** The first six cells: a time slice has no pre-period, and leaves out its own beginning. */
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

/** Slots that units share in a pre-period: 64 KiB a route. More units than that blur it, and never bias it. */
const SLOTS = 8_192;

/** The first requests of a variant on a route run code that is not compiled yet, and open connections. */
export const WARM_UP_REQUESTS = 20;
/** A variant with 2 % of the requests has had its 20 by then; one with less, or with none, must not hold the warm-up open. */
export const MAX_WARM_UP_REQUESTS = 1_000;

const STRIDE = CELLS.length;

export class RouteTally {
  succeeded = 0;
  succeededMs = 0;
  readonly gates = new Map<string, { on: VariantTally; off: VariantTally; warmUp: WarmUp }>();
  private before: PrePeriod | null = null;

  constructor(
    readonly method: string,
    readonly pattern: string,
  ) {}

  /** Every request of the route, gated or not. */
  addTraffic(outcome: Outcome): void {
    if (!outcome.succeeded) return;
    this.succeeded += 1;
    this.succeededMs += outcome.durationMs;
  }

  /** A request before the gates opened. */
  addBefore(unitHash: number, outcome: Outcome): void {
    if (outcome.succeeded) (this.before ??= new PrePeriod()).add(unitHash, outcome.durationMs);
  }

  add(gate: string, on: boolean, unitHash: number, outcome: Outcome): void {
    const tallies = entryOf(this.gates, gate, () => ({
      on: new VariantTally(),
      off: new VariantTally(),
      warmUp: new WarmUp(),
    }));
    const isWarmUp = !outcome.aborted && tallies.warmUp.takes(on);
    (on ? tallies.on : tallies.off).add(unitHash, outcome, this.before, isWarmUp);
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

  /** `unitHash` has 32 bits. The unit's pre-period is added with its first request. */
  add(unitHash: number, outcome: Outcome, before: PrePeriod | null, isWarmUp: boolean): void {
    const at = (unitHash % BUCKETS) * STRIDE;
    if (this.units.add(unitHash) && before !== null) before.addTo(this.cells, at, unitHash);
    addOutcome(this.cells, at, outcome);
    if (!isWarmUp) return;
    const increase = (cell: Cell, by: number): void => void (this.cells[at + COLUMN[cell]]! += by);
    increase('warmUpCompleted', 1);
    increase('warmUpBlockedMs', outcome.blockedMs);
    if (!outcome.succeeded) return;
    increase('warmUpSucceeded', 1);
    increase('warmUpSucceededMs', outcome.durationMs);
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

/** Latency of a route's units while every gate was still off: what CUPED takes off later. */
class PrePeriod {
  private readonly counts = new Float32Array(SLOTS);
  private readonly sumsMs = new Float32Array(SLOTS);

  add(unitHash: number, durationMs: number): void {
    const slot = unitHash % SLOTS;
    this.counts[slot]! += 1;
    this.sumsMs[slot]! += durationMs;
  }

  addTo(cells: Float64Array, at: number, unitHash: number): void {
    const slot = unitHash % SLOTS;
    cells[at + COLUMN.beforeSucceeded]! += this.counts[slot]!;
    cells[at + COLUMN.beforeSucceededMs]! += this.sumsMs[slot]!;
  }
}
