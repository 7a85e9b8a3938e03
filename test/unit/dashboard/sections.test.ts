import { expect, it } from 'vitest';
import type { PoolSnapshot, UpstreamSnapshot } from '../../../src/core/snapshot.js';
import { NO_SECTIONS } from '../../../src/dashboard/fleet-view.js';
import { describeUpstreams } from '../../../src/dashboard/sections.js';

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
