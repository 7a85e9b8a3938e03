import { epochMsOf } from '../core/clock.js';

/** A job is missed when so many runs were due and it has not started. */
const MISSED_RUNS = 3;

/** Milliseconds; `dueMs` on the monotonic clock. */
interface Expectation {
  readonly periodMs: number;
  /** When the third run is due. */
  readonly dueMs: number;
}

/** When a job runs, as its decorator tells; null while it is unknown. */
export type JobSchedule = (sinceMs: number) => Expectation | null;

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

/** `@Cron()`: the job of its name, or any of the same expression, computes when it runs. A job that is stopped has died too. */
export function cronSchedule(expression: string, name: string | null, registry: CronRegistry): JobSchedule {
  let known: (Expectation & { readonly sinceMs: number }) | null = null;
  const findJob = (): CronJob | undefined => {
    const jobs = registry.getCronJobs();
    const named = name === null ? undefined : jobs.get(name);
    return named ?? [...jobs.values()].find(({ cronTime }) => cronTime.source === expression);
  };
  return (sinceMs) => {
    if (known?.sinceMs === sinceMs) return known;
    try {
      const job = findJob();
      if (job !== undefined) known = { sinceMs, ...expectRuns(job, sinceMs) };
      return job === undefined ? null : known;
    } catch {
      // A version of `cron` that computes dates in another way.
      return null;
    }
  };
}

/** The period is the shortest time between two of the runs: a job of weekdays runs every 24 h. */
function expectRuns({ cronTime }: CronJob, sinceMs: number): Expectation {
  const next = (at: number): number => cronTime.getNextDateFrom(new Date(at), cronTime.timeZone).valueOf();
  const sinceAt = epochMsOf(sinceMs);
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
