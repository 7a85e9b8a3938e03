import { getOrAdd } from '../core/get-or-add.js';
import { Histogram } from '../core/histogram.js';
import type { OffloadMethodStats, OffloadStats } from '../core/snapshot.js';

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
