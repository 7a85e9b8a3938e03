import { Histogram } from '../core/histogram.js';
import type { OffloadMethodStats, OffloadStats } from '../core/snapshot.js';

/** Names beyond this number share one row. */
const MOST_NAMES = 200;
const OTHERS = '_OTHER';
/** Calls after which the price of cloning is told, and the share of the run from which it is. */
const JUDGED_AFTER = 20;
const DEAR_RATIO = 0.3;

/** How one call in a worker went; milliseconds. */
export interface Spent {
  readonly runMs: number;
  /** The worker's loop was busy. */
  readonly busyMs: number;
  readonly cloneMs: number;
  readonly waitMs: number;
}

interface Row {
  done: number;
  failed: number;
  calls: number;
  runMs: number;
  cloneMs: number;
  judged: boolean;
}

/** What has become of the calls of one application. */
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

  constructor(private readonly dear: (name: string, row: { runMs: number; cloneMs: number }) => void) {}

  ended(name: string, outcome: 'done' | 'failed', spent: Spent | null = null): void {
    this[outcome] += 1;
    if (spent === null) return;
    this.run.record(spent.runMs);
    this.clone.record(spent.cloneMs);
    this.wait.record(spent.waitMs);
    this.busyMs += spent.busyMs;
    const row = this.rowOf(name);
    row[outcome] += 1;
    row.calls += 1;
    row.runMs += spent.runMs;
    row.cloneMs += spent.cloneMs;
    if (row.judged || row.calls < JUDGED_AFTER) return;
    row.judged = true;
    if (row.cloneMs > row.runMs * DEAR_RATIO) this.dear(name, meansOf(row));
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
        return { name, done: row.done, failed: row.failed, ...meansOf(row) };
      }),
    };
  }

  private rowOf(name: string): Row {
    const key = this.rows.has(name) || this.rows.size < MOST_NAMES ? name : OTHERS;
    let row = this.rows.get(key);
    if (row === undefined) {
      this.rows.set(key, (row = { done: 0, failed: 0, calls: 0, runMs: 0, cloneMs: 0, judged: false }));
    }
    return row;
  }
}

const meansOf = ({ calls, runMs, cloneMs }: Row) => ({ runMs: runMs / calls, cloneMs: cloneMs / calls });
