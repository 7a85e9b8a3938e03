import { toEpochMs } from '../core/clock.js';

/** A job is missed when so many runs were due and it has not started. */
const MISSED_RUNS = 3;

/** Milliseconds; `dueMs` on the monotonic clock. */
interface Expectation {
  readonly periodMs: number;
  /** When the third run is due. */
  readonly dueMs: number;
}

/** When a job runs, by its decorator; null while it is unknown. */
export type JobSchedule = (sinceMs: number, nowMs: number) => Expectation | null;

export const intervalSchedule =
  (periodMs: number): JobSchedule =>
  (sinceMs) => ({ periodMs, dueMs: sinceMs + MISSED_RUNS * periodMs });

/** The parts that are read of @nestjs/schedule's registry, and of the jobs of `cron` in it. */
export interface CronRegistry {
  getCronJobs(): ReadonlyMap<string, CronJob>;
}
interface CronJob {
  readonly cronTime: {
    readonly source: unknown;
    readonly timeZone?: string;
    getNextDateFrom(start: Date, timeZone?: string): { valueOf(): number };
  };
}

/** `cron` takes some milliseconds to compute three dates: the first snapshot of many jobs must not block the loop. */
const BETWEEN_COMPUTATIONS_MS = 100;

/** Schedules of `@Cron()`: the job of its name, or any of the same expression, computes when it runs. A job that is stopped has died too. */
export class CronSchedules {
  private computedMs = -Infinity;

  constructor(private readonly registry: CronRegistry) {}

  create(expression: string, name: string | null): JobSchedule {
    let known: (Expectation & { readonly sinceMs: number }) | null = null;
    return (sinceMs, nowMs) => {
      if (known?.sinceMs === sinceMs) return known;
      // Nothing is computed for a job that runs as it did.
      if (known !== null && nowMs - sinceMs < 2 * known.periodMs) return { ...known, dueMs: Infinity };
      if (nowMs - this.computedMs < BETWEEN_COMPUTATIONS_MS) return null;
      try {
        const job = this.findJob(expression, name);
        if (job === null) return null;
        this.computedMs = nowMs;
        return (known = { sinceMs, ...expectRuns(job, sinceMs) });
      } catch {
        // A version of `cron` that computes dates in another way.
        return null;
      }
    };
  }

  private findJob(expression: string, name: string | null): CronJob | null {
    const jobs = this.registry.getCronJobs();
    const named = name === null ? undefined : jobs.get(name);
    return named ?? [...jobs.values()].find(({ cronTime }) => cronTime.source === expression) ?? null;
  }
}

/** The period is the shortest time between two of the runs: a job of weekdays runs every 24 h. */
function expectRuns({ cronTime }: CronJob, sinceMs: number): Expectation {
  const next = (at: number): number => cronTime.getNextDateFrom(new Date(at), cronTime.timeZone).valueOf();
  const sinceAt = toEpochMs(sinceMs);
  const first = next(sinceAt);
  const second = next(first);
  const third = next(second);
  return { periodMs: Math.min(second - first, third - second), dueMs: sinceMs + third - sinceAt };
}

export function formatDuration(ms: number): string {
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 600_000) return `${Math.round(ms / 1_000)} s`;
  return ms < 36_000_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}
