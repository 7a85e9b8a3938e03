import { Histogram } from '../core/histogram.js';
import type { WorkType } from '../core/record.js';
import type { Finding, WorkSnapshot } from '../core/snapshot.js';
import { epochMsOf } from '../core/clock.js';
import type { Route } from '../request/routes.js';

/** So many of the last times between two runs are remembered. */
const GAPS = 8;
/** Fewer give no period. */
const LEAST_GAPS = 2;
/** A job is missed when it has not run for so many of its periods. */
const MISSED_PERIODS = 3;

/** All calls of one measured method. */
export class WorkRow {
  running = 0;
  private count = 0;
  private failed = 0;
  /** Monotonic milliseconds at which the last run began; null before the first. */
  private lastMs: number | null = null;
  private readonly gaps: number[] = [];
  private readonly durations = new Histogram();

  constructor(
    readonly type: WorkType,
    readonly name: string,
    readonly route: Route,
    /** Milliseconds between two runs, by `@Interval()`; null for other methods. */
    private readonly intervalMs: number | null,
    private readonly madeMs: number,
  ) {}

  started(nowMs: number): void {
    if (this.lastMs !== null && this.gaps.push(nowMs - this.lastMs) > GAPS) this.gaps.shift();
    this.lastMs = nowMs;
    this.running += 1;
  }

  ended(durationMs: number, failed: boolean): void {
    this.running -= 1;
    this.count += 1;
    if (failed) this.failed += 1;
    this.durations.record(durationMs);
  }

  snapshot(): WorkSnapshot {
    const { type, name, count, failed, running, lastMs, durations } = this;
    const lastAt = lastMs === null ? 0 : Math.round(epochMsOf(lastMs));
    return { type, name, count, failed, running, lastAt, durationMs: durations.figures() };
  }

  /** A job that has stopped running; null while it runs as it did. */
  missed(nowMs: number): Finding | null {
    const { periodMs } = this;
    if (this.type !== 'cron' || periodMs === null) return null;
    const silentMs = nowMs - (this.lastMs ?? this.madeMs);
    if (silentMs <= MISSED_PERIODS * periodMs) return null;
    const why = this.running === 0 ? '' : ': its last run has not ended';
    const text = `${this.name} runs every ${duration(periodMs)}, and has not started for ${duration(silentMs)}${why}`;
    return { kind: 'missed-runs', route: null, text };
  }

  /** The longest of the last times between two runs: a job of weekdays rests longer than a day. */
  private get periodMs(): number | null {
    if (this.intervalMs !== null) return this.intervalMs;
    return this.gaps.length < LEAST_GAPS ? null : Math.max(...this.gaps);
  }
}

function duration(ms: number): string {
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 600_000) return `${Math.round(ms / 1_000)} s`;
  return ms < 36_000_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}
