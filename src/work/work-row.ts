import { Histogram } from '../core/histogram.js';
import type { WorkType } from '../core/record.js';
import type { Finding, WorkSnapshot } from '../core/snapshot.js';
import { toEpochMs } from '../core/clock.js';
import type { Route } from '../request/routes.js';

/** So many of the last times between two runs are remembered. */
const GAPS = 8;
/** Fewer give no period. */
const LEAST_GAPS = 2;
/** A job is missed when so many runs were due and it has not started. */
const MISSED_RUNS = 3;

/** All calls of one measured method. */
export class WorkRow {
  running = 0;
  private count = 0;
  private failed = 0;
  private overlapped = 0;
  /** Monotonic milliseconds at which the last run began; null before the first. */
  private lastMs: number | null = null;
  private readonly gaps: number[] = [];
  private readonly durations = new Histogram();

  constructor(
    readonly type: WorkType,
    readonly name: string,
    readonly route: Route,
  ) {}

  started(nowMs: number): void {
    if (this.lastMs !== null && this.gaps.push(nowMs - this.lastMs) > GAPS) this.gaps.shift();
    this.lastMs = nowMs;
    if (this.running > 0) this.overlapped += 1;
    this.running += 1;
  }

  ended(durationMs: number, failed: boolean): void {
    this.running -= 1;
    this.count += 1;
    if (failed) this.failed += 1;
    this.durations.record(durationMs);
  }

  snapshot(): WorkSnapshot {
    const { type, name, count, failed, overlapped, running, lastMs, durations } = this;
    const lastAt = lastMs === null ? 0 : Math.round(toEpochMs(lastMs));
    return { type, name, count, failed, overlapped, running, lastAt, durationMs: durations.figures() };
  }

  /** A job that has stopped running; null while it runs as it did. */
  missed(nowMs: number): Finding | null {
    if (this.type !== 'cron' || this.lastMs === null || this.gaps.length < LEAST_GAPS) return null;
    // A job of weekdays rests longer than a day.
    const periodMs = Math.max(...this.gaps);
    const sinceMs = nowMs - this.lastMs;
    if (sinceMs <= MISSED_RUNS * periodMs) return null;
    const why = this.running === 0 ? '' : ': its last run has not ended';
    const text = `${this.name} runs every ${formatDuration(periodMs)}, and has not started for ${formatDuration(sinceMs)}${why}`;
    return { kind: 'missed-runs', route: null, text };
  }
}

function formatDuration(ms: number): string {
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 600_000) return `${Math.round(ms / 1_000)} s`;
  return ms < 36_000_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}
