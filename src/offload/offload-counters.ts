import { getOrAdd } from '../core/get-or-add.js';
import { Histogram } from '../core/histogram.js';
import type { OncePerCause } from '../core/reporter.js';
import type { OffloadMethodStats, OffloadStats } from '../core/snapshot.js';

/** Calls after which the price of cloning is judged, and the share of the run from which it is reported. */
const JUDGED_AFTER = 20;
const DEAR_RATIO = 0.3;

/** Times of one call in a worker, milliseconds. */
export interface Spent {
  readonly runMs: number;
  /** Time in which the worker's loop was busy. */
  readonly busyMs: number;
  readonly cloneMs: number;
  readonly waitMs: number;
}

interface Row {
  done: number;
  failed: number;
  runMs: number;
  cloneMs: number;
}

/** Counts the calls of one application. */
export class OffloadCounters {
  private done = 0;
  private failed = 0;
  timedOut = 0;
  refused = 0;
  inline = 0;
  private readonly run = new Histogram();
  private readonly clone = new Histogram();
  private readonly wait = new Histogram();
  private busyMs = 0;
  private readonly rows = new Map<string, Row>();

  constructor(private readonly report: OncePerCause) {}

  ended(name: string, outcome: 'done' | 'failed', spent: Spent | null = null): void {
    this[outcome] += 1;
    if (spent === null) return;
    this.run.record(spent.runMs);
    this.clone.record(spent.cloneMs);
    this.wait.record(spent.waitMs);
    this.busyMs += spent.busyMs;
    const row = getOrAdd(this.rows, name, () => ({ done: 0, failed: 0, runMs: 0, cloneMs: 0 }));
    row[outcome] += 1;
    row.runMs += spent.runMs;
    row.cloneMs += spent.cloneMs;
    if (countEnded(row) !== JUDGED_AFTER || row.cloneMs <= row.runMs * DEAR_RATIO) return;
    const { runMs, cloneMs } = computeMeans(row);
    const cause = `"${name}" spends ${cloneMs.toFixed(1)} ms of the event loop on cloning for ${runMs.toFixed(1)} ms in a worker`;
    const advice = 'Pass ids and load the data in the worker, or move buffers with `transfer: true`.';
    this.report.report(cause, `${cause}. ${advice}`);
  }

  stats(now: Pick<OffloadStats, 'threads' | 'running' | 'pending' | 'throttledMs'>): OffloadStats {
    const { done, failed, timedOut, refused, inline } = this;
    return {
      ...now,
      done,
      failed,
      timedOut,
      refused,
      inline,
      runMs: this.run.figures(),
      cloneMs: this.clone.figures(),
      waitMs: this.wait.figures(),
      savedLoopMs: this.busyMs - this.clone.sumMs,
      methods: Array.from(this.rows, ([name, row]): OffloadMethodStats => {
        return { name, done: row.done, failed: row.failed, ...computeMeans(row) };
      }),
    };
  }
}

const countEnded = ({ done, failed }: Row): number => done + failed;
const computeMeans = (row: Row) => ({ runMs: row.runMs / countEnded(row), cloneMs: row.cloneMs / countEnded(row) });
