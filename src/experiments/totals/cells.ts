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
  // How much of the cells above is the variant's warm-up.
  'warmUpSucceeded',
  'warmUpSucceededMs',
  'warmUpCompleted',
  'warmUpBlockedMs',
] as const;
export type Cell = (typeof CELLS)[number];

/** Column of each cell. */
export const COLUMN = Object.fromEntries(CELLS.map((cell, index) => [cell, index])) as Readonly<Record<Cell, number>>;

/** The first six cells: a time slice has no pre-period, and leaves out its own beginning. */
export const SLICE_CELLS = COLUMN.aborted + 1;

/** What a request that has ended adds. */
export interface Outcome {
  /** Successful: completed with a status below 400. */
  succeeded: boolean;
  /** A status of 500 or more. */
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
