import { Histogram } from '../core/histogram.js';
import type { OffloadStats } from '../core/snapshot.js';
import type { CpuAllowance } from '../ports/cpu-allowance.js';

/** The kernel's counters are read once a second. */
const THROTTLING_MS = 1_000;

/** Times of one call in a worker, milliseconds. */
export interface Spent {
  readonly runMs: number;
  /** Time in which the worker's loop was busy. */
  readonly busyMs: number;
  readonly cloneMs: number;
  readonly waitMs: number;
}

/** Counts the calls of one application. */
export class OffloadCounters {
  timedOut = 0;
  refused = 0;
  private done = 0;
  private failed = 0;
  private busyMs = 0;
  private throttledMs = 0;
  private readonly run = new Histogram();
  private readonly clone = new Histogram();
  private readonly wait = new Histogram();
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly allowance: CpuAllowance | null) {}

  /** A call begins: the container's limit may throttle the process until no call is running. */
  began(isBusy: () => boolean): void {
    if (this.timer !== undefined) return;
    const readMs = (): number => this.allowance?.throttledMs() ?? 0;
    let lastMs = readMs();
    this.timer = setInterval(() => {
      const nowMs = readMs();
      this.throttledMs += nowMs - lastMs;
      lastMs = nowMs;
      if (!isBusy()) this.close();
    }, THROTTLING_MS).unref();
  }

  ended(outcome: 'done' | 'failed', spent: Spent | null = null): void {
    this[outcome] += 1;
    if (spent === null) return;
    this.run.record(spent.runMs);
    this.clone.record(spent.cloneMs);
    this.wait.record(spent.waitMs);
    this.busyMs += spent.busyMs;
  }

  stats(now: Pick<OffloadStats, 'threads' | 'running' | 'pending'>): OffloadStats {
    const { done, failed, timedOut, refused, throttledMs } = this;
    return {
      ...now,
      done,
      failed,
      timedOut,
      refused,
      runMs: this.run.figures(),
      cloneMs: this.clone.figures(),
      waitMs: this.wait.figures(),
      savedLoopMs: this.busyMs - this.clone.sumMs,
      throttledMs,
    };
  }

  /** Leaves no timer. */
  close(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }
}
