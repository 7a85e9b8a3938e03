import { expect, it } from 'vitest';
import { NO_SECTIONS } from '../../../src/dashboard/fleet-view.js';
import { formatPage } from '../../../src/dashboard/text-view.js';
import type { BlockRow, DashboardData, RouteRow } from '../../../src/dashboard/view.js';

const route: RouteRow = { id: 'reports', name: 'GET /reports/:id', count: 3, ms: [120, 120, 121, 121, 121] };
const block: BlockRow = {
  id: 1,
  at: 0,
  since: 0,
  count: 2,
  totalMs: 240,
  maxMs: 121,
  durationMs: 120,
  cause: 'javascript',
  route: 'GET /reports/:id',
  handler: 'ReportsController.report',
  proven: true,
  location: 'src/reports.ts:14:20',
  stack: ['at renderRows (src/reports.ts:14:20)', 'at report (src/reports.ts:7:33)\u001b[2J'],
  gcMs: 0,
  waited: 0,
  waiters: [],
  curl: `curl 'http://localhost:3000/reports/7?token=REDACTED'`,
};

const text = (routes: RouteRow[], blocks: BlockRow[], of: Partial<DashboardData> = {}): string => {
  const data: DashboardData = {
    at: 5_000,
    scope: 'pod',
    isShared: false,
    pods: null,
    podCount: 1,
    assets: '',
    process: { pod: 'pod-1', pid: 1, release: null, node: 'v20.0.0', startedAt: 0 },
    overMs: [],
    routes,
    totals: { count: 3, errors: 0, inFlight: 0, routes: routes.length },
    traffic: [],
    container: [],
    sections: { ...NO_SECTIONS, blocks },
    detail: null,
    ...of,
  };
  return formatPage(data, { rows: [], releases: [] }, null);
};

it('blocks have the line that repeats them, and their stack, as on the page', () => {
  expect(text([route], [block])).toContain(`
GET /reports/:id
  curl 'http://localhost:3000/reports/7?token=REDACTED'
  at renderRows (src/reports.ts:14:20)
  at report (src/reports.ts:7:33)\\u001b[2J
`);
  const many = Array.from({ length: 9 }, (_, id) => ({ ...block, id }));
  expect(text([route], many).match(/^ {2}curl /gm)).toHaveLength(3);
});

it('a block without a line of the application shows the innermost line that is known, or why the loop stood', () => {
  const stack = ['push (native)', 'step (node_modules/orm/query.js:3:9)', 'run (node_modules/orm/index.js:1:1)'];
  expect(text([route], [{ ...block, location: null, stack }])).toContain(`  ${stack[1]}  `);
  expect(text([route], [{ ...block, location: null, stack: [], cause: 'gc' }])).toMatch(/GET \/reports\/:id {2}gc /);
});

it('a pause of the process is the operating system’s, and no unknown request’s', () => {
  const pause = { ...block, route: null, handler: null, location: null, stack: [], curl: null };
  expect(text([], [{ ...pause, cause: 'not-scheduled' }])).toMatch(/ the operating system {2}not-scheduled /);
  expect(text([], [{ ...pause, cause: 'javascript' }])).toMatch(/ unknown {2}javascript /);
});

it('counts no pods before one has written its first minute', () => {
  const fleet: Partial<DashboardData> = { scope: 'fleet', pods: [], totals: null };
  expect(text([], [], { ...fleet, podCount: 0 })).toMatch(/^All pods, as pod-1 shows them/);
  expect(text([], [], { ...fleet, podCount: 3 })).toMatch(/^All 3 pods, as pod-1 shows them/);
});

it('shows a mean request in parts', () => {
  const told = text([{ ...route, time: [1, 4, 7, 10, 98] }], []);
  expect(told).toContain('own / upstream / pool / loop wait / idle ms');
  expect(told).toMatch(/1\.00 \/ 4\.00 \/ 7\.00 \/ 10\.0 \/ 98\.0$/m);
  expect(text([{ ...route, time: [null, 0, 0, 100, 20] }], [])).toMatch(/– \/ 0 \/ 0 \/ 100 \/ 20\.0$/m);
});
