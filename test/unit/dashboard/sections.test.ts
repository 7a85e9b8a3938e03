import { expect, it } from 'vitest';
import type { PoolSnapshot, UpstreamSnapshot, WorkSnapshot } from '../../../src/core/snapshot.js';
import { NO_SECTIONS } from '../../../src/dashboard/fleet-view.js';
import { describeUpstreams, describeWork } from '../../../src/dashboard/sections.js';

const durationMs = { mean: 9, p50: 8, p95: 20, p99: 30, max: 41 };
const upstream = (target: string, pool: Partial<PoolSnapshot> | null): UpstreamSnapshot => ({
  target,
  kind: 'sql',
  calls: 9,
  errors: 0,
  inFlight: 1,
  durationMs,
  pool: pool && { max: 10, total: 10, idle: 0, waiting: 0, acquired: 9, waitMs: durationMs, ...pool },
  routes: [],
});
const columnOf = (targets: UpstreamSnapshot[]) => {
  const { columns, rows } = describeUpstreams({ sections: { ...NO_SECTIONS, upstream: targets } }).tables[0]!;
  const at = columns.findIndex(({ name }) => name === 'Connections');
  return at < 0 ? null : rows.map((row) => row[at]);
};

it('the table of upstreams has the connections of watched pools, and those that wait for one', () => {
  const targets = [
    upstream('postgres db/shop', { waiting: 34 }),
    upstream('postgres db/stock', { total: 4, idle: 1 }),
    upstream('mysql db/old', { max: null, total: null, idle: null, waiting: null }),
    upstream('http api', null),
  ];
  expect(columnOf(targets)).toEqual([{ text: '10/10, 34 wait', as: 'bad' }, '3/10', '–', '']);
  expect(columnOf([upstream('http api', null)])).toBeNull();
});

it('the table of jobs has their overlaps, and when each began last', () => {
  const job: WorkSnapshot = {
    type: 'cron',
    name: 'ReportsJob.rebuild',
    count: 1_200,
    failed: 2,
    overlapped: 3,
    running: 1,
    lastAt: 100_000,
    durationMs,
  };
  const work = [job, { ...job, name: 'Mail.send', failed: 0, lastAt: 0 }];
  const [table] = describeWork({ at: 220_000, sections: { ...NO_SECTIONS, work } }).tables;
  expect(table!.columns.map(({ name }) => name)).toEqual([
    'Work',
    'Type',
    'Calls',
    'Failed',
    'Overlapped',
    'Running',
    'p95 ms',
    'Last began',
  ]);
  expect(table!.rows.map((row) => [row[3], row[4], row[7]])).toEqual([
    [{ text: '2', as: 'bad' }, '3', '2 min ago'],
    ['0', '3', 'never'],
  ]);
});
