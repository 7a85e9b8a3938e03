import { epochMsOf } from '../core/clock.js';

/** A job is missed when so many runs were due and it has not started. */
export const MISSED_RUNS = 3;

/** When a job runs, as its decorator says. Monotonic milliseconds. */
export interface JobSchedule {
  /** `'every 60 s'`, `"at '0 9 * * 1-5'"` */
  readonly when: string;
  /** When the third run after `sinceMs` is due; Infinity: the job is stopped on purpose; null: unknown. */
  dueMs(sinceMs: number): number | null;
}

export const intervalSchedule = (intervalMs: number): JobSchedule => ({
  when: `every ${formatDuration(intervalMs)}`,
  dueMs: (sinceMs) => sinceMs + MISSED_RUNS * intervalMs,
});

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
  /** Before `cron` 4: `running`. */
  readonly isActive?: boolean;
  readonly running?: boolean;
}

/** `@Cron()`: the job of its name, or any of the same expression, computes when it runs. */
export class CronSchedule implements JobSchedule {
  readonly when: string;
  private known = { sinceMs: NaN, dueMs: 0 };

  constructor(
    private readonly expression: string,
    private readonly name: string | null,
    private readonly registry: CronRegistry,
  ) {
    this.when = `at '${expression}'`;
  }

  dueMs(sinceMs: number): number | null {
    try {
      const job = this.findJob();
      if (job === null) return null;
      if (job.isActive === false || job.running === false) return Infinity;
      if (this.known.sinceMs !== sinceMs) this.known = { sinceMs, dueMs: computeDue(job, sinceMs) };
      return this.known.dueMs;
    } catch {
      // A version of `cron` that computes dates in another way.
      return null;
    }
  }

  private findJob(): CronJob | null {
    const jobs = this.registry.getCronJobs();
    const named = this.name === null ? undefined : jobs.get(this.name);
    return named ?? [...jobs.values()].find(({ cronTime }) => cronTime.source === this.expression) ?? null;
  }
}

function computeDue({ cronTime }: CronJob, sinceMs: number): number {
  const sinceAt = epochMsOf(sinceMs);
  let at = sinceAt;
  for (let i = 0; i < MISSED_RUNS; i++) at = cronTime.getNextDateFrom(new Date(at), cronTime.timeZone).valueOf();
  return sinceMs + at - sinceAt;
}

export function formatDuration(ms: number): string {
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 600_000) return `${Math.round(ms / 1_000)} s`;
  return ms < 36_000_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`;
}
