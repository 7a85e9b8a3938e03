import { describe, expect, it } from 'vitest';
import { CronSchedules, intervalSchedule, type JobSchedule } from '../../../src/work/job-schedule.js';
import { WorkRow } from '../../../src/work/work-row.js';

const MIN = 60_000;
const row = (type: 'cron' | 'method' = 'cron', schedule: JobSchedule | null = null): WorkRow =>
  new WorkRow(type, 'ReportsJob.rebuild', {} as never, schedule, 0);
const run = (of: WorkRow, ...startsMs: number[]): void => {
  for (const ms of startsMs) {
    of.started(ms);
    of.ended(10, false);
  }
};

describe('a job is missed', () => {
  it('after three of the longest times between its runs, once it has shown two of them', () => {
    const job = row();
    run(job, MIN, 2 * MIN);
    expect(job.missed(100 * MIN)).toBeNull();
    run(job, 4 * MIN);
    expect(job.missed(10 * MIN)).toBeNull();
    expect(job.missed(10 * MIN + 1)).toEqual({
      kind: 'missed-runs',
      route: null,
      text: 'ReportsJob.rebuild runs every 120 s, and has not started for 360 s',
    });
    run(job, 11 * MIN);
    expect(job.missed(12 * MIN)).toBeNull();
  });

  it('after three intervals where a decorator tells them, though it has never run', () => {
    const job = row('cron', intervalSchedule(MIN));
    expect(job.missed(3 * MIN)).toBeNull();
    expect(job.missed(20 * MIN)?.text).toBe('ReportsJob.rebuild runs every 60 s, and has not started for 20 min');
  });

  it('when its cron expression has let three runs pass, though it has never run', () => {
    // As `cron` has it: of a job at each full five minutes.
    const cronTime = {
      source: '*/5 * * * *',
      getNextDateFrom: (start: Date) => new Date((Math.floor(start.getTime() / (5 * MIN)) + 1) * 5 * MIN),
    };
    const jobs = new Map([['some id', { cronTime }]]);
    const schedules = new CronSchedules({ getCronJobs: () => jobs });
    const job = row('cron', schedules.create('*/5 * * * *', null));
    expect(job.missed(10 * MIN)).toBeNull();
    expect(job.missed(16 * MIN)?.text).toBe('ReportsJob.rebuild runs every 300 s, and has not started for 16 min');
    run(job, 17 * MIN);
    expect(job.missed(26 * MIN)).toBeNull();
    expect(job.missed(33 * MIN)?.text).toBe('ReportsJob.rebuild runs every 300 s, and has not started for 16 min');
    jobs.clear();
    run(job, 34 * MIN);
    expect(job.missed(60 * MIN)).toBeNull();
  });

  it('also where its last run hangs, and the text says so', () => {
    const job = row('cron', intervalSchedule(MIN));
    job.started(0);
    expect(job.missed(4 * MIN)?.text).toContain('has not started for 240 s: its last run has not ended');
  });

  it('never where it is no job', () => {
    const method = row('method');
    run(method, 0, MIN, 2 * MIN);
    expect(method.missed(1_000 * MIN)).toBeNull();
  });
});
