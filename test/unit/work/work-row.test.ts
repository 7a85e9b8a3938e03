import { describe, expect, it } from 'vitest';
import { WorkRow } from '../../../src/work/work-row.js';

const MIN = 60_000;
const row = (type: 'cron' | 'method' = 'cron'): WorkRow => new WorkRow(type, 'ReportsJob.rebuild', {} as never);
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

  it('also where its last run hangs, and the text says so', () => {
    const job = row();
    run(job, 0, MIN);
    job.started(2 * MIN);
    expect(job.missed(6 * MIN)?.text).toContain('has not started for 240 s: its last run has not ended');
  });

  it('never where it is no job', () => {
    const method = row('method');
    run(method, 0, MIN, 2 * MIN);
    expect(method.missed(1_000 * MIN)).toBeNull();
  });
});
