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
] as const;
export type Cell = (typeof CELLS)[number];

/** Column of each cell. */
export const COLUMN = Object.fromEntries(CELLS.map((cell, index) => [cell, index])) as Readonly<Record<Cell, number>>;

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
