import { expect, it } from 'vitest';
import { explainBlock, explainProblems, explainRoute, findBlock } from '../../../src/dashboard/top/explanation.js';
import type { BlockRow, DashboardData, RouteDetail } from '../../../src/dashboard/view.js';

const block: BlockRow = {
  id: 7,
  at: Date.UTC(2026, 0, 2, 10),
  since: Date.UTC(2026, 0, 1, 9),
  count: 3,
  totalMs: 900,
  maxMs: 400,
  durationMs: 300,
  cause: 'javascript',
  route: 'GET /reports/:id',
  handler: 'ReportsController.find',
  proven: true,
  location: 'src/reports.ts:10:3',
  stack: ['render (src/reports.ts:10:3)'],
  gcMs: 0,
  waited: 2,
  waiters: ['GET /quick'],
  curl: "curl 'http://localhost:3000/reports/7'",
};
const data = {
  process: { startedAt: Date.UTC(2026, 0, 1), release: '1.2.0', pod: 'api-1' },
  detail: {
    past: {
      rows: [[Date.UTC(2026, 0, 2, 9), 4, 0, 10, 320, 400, 3, 40]],
      releases: [{ at: Date.UTC(2026, 0, 1), release: '1.2.0' }],
    },
  },
  sections: {
    blocks: [{ ...block, id: 8, totalMs: 1, location: 'src/other.ts:1:1' }, block],
    now: [{ level: 'bad', section: 'requests', text: 'GET /reports/:id is slower since 09:00 UTC.' }],
  },
} as unknown as DashboardData;
const page = new URL('http://localhost:3000/perf/');

it('a block is explained: since when, the last hour, the request, and what to verify', () => {
  expect(findBlock(data, 'block')).toBe(block);
  expect(findBlock(data, 'reports.ts:10')).toBe(block);
  expect(explainBlock(data, block, page).split('\n')).toEqual([
    '# GET /reports/:id (ReportsController.find) blocks the event loop for 300 ms at src/reports.ts:10:3',
    '',
    'First at 2026-01-01T09:00:00Z, last at 2026-01-02T10:00:00Z, 3 times, the longest 400 ms, 900 ms in all. Pod api-1, release 1.2.0, since it started at 2026-01-01T00:00:00Z.',
    'Cause: javascript. 2 requests waited: GET /quick.',
    '',
    'Stack:',
    '    render (src/reports.ts:10:3)',
    '',
    'What is wrong now:',
    '- GET /reports/:id is slower since 09:00 UTC.',
    '',
    'The last hour:',
    '- 2026-01-02T09:00:00Z: 4.0 requests/s, 0.0 errors/s, p95 320 ms, last week 40 ms',
    '- release 1.2.0 since 2026-01-01T00:00:00Z',
    '',
    'Send the request again:',
    "    curl 'http://localhost:3000/reports/7'",
    '',
    'Verify after the change:',
    '- the request above no longer blocks: the page has no new block at src/reports.ts:10:3',
    '- code that computes for long runs in a worker thread (@Offload), in pieces, or on fewer rows',
    '- a test keeps it: expectWork(app, { get: "/reports/:id" }, { blockedMs: { atMost: 50 } }), with its parameters filled in',
  ]);
});

it('proposes no test of a request for a block of a cron job', () => {
  const text = explainBlock(data, { ...block, route: 'CRON ReportsJob.rebuild' }, page);
  expect(text).toContain('- code that computes for long runs in a worker thread');
  expect(text).not.toContain('expectWork');
});

it('a pause of the process is nobody’s code, and is explained where no code has blocked', () => {
  const pause: BlockRow = {
    ...block,
    id: 9,
    cause: 'not-scheduled',
    route: null,
    handler: null,
    proven: false,
    location: null,
    stack: [],
    curl: null,
    totalMs: 90_000,
  };
  const sections = { ...data.sections, blocks: [pause, block] };
  expect(findBlock({ ...data, sections }, 'block')).toBe(block);
  expect(findBlock({ ...data, sections: { ...sections, blocks: [pause] } }, 'block')).toBe(pause);
  const text = explainBlock(data, pause, page);
  expect(text).toMatch(/^# The operating system kept the process waiting for 300 ms\n/);
  expect(text).toContain('- no code is at fault: ');
  expect(text).not.toMatch(/may block|@Offload|expectWork/);
});

it('a resolver is explained with its blocks, which are named for its HTTP request', () => {
  const handler = 'ReportsResolver.report';
  const named: BlockRow = { ...block, route: 'POST /graphql', handler };
  const row = { name: `GRAPHQL ${handler}`, handler, count: 8, blockedMs: 900, ms: [200, 200, 300, 300, 300] };
  const detail = { row, upstream: [] } as unknown as RouteDetail;
  const text = explainRoute({ ...data, sections: { ...data.sections, blocks: [named] } }, detail, page);
  expect(text).toContain('It has blocked the event loop for 900 ms:\n- POST /graphql (ReportsResolver.report) blocks');
});

it('a job has runs, and no requests', () => {
  const row = { name: 'CRON ReportsJob.rebuild', count: 1, ms: [1, 1, 1, 1, 1], time: [1, 1, 1, 1, 1] };
  const upstream = [{ target: 'sql db', callsPerRequest: 2, wallMs: 4 }];
  const text = explainRoute(
    { ...data, sections: { ...data.sections, blocks: [] } },
    { row, upstream } as unknown as RouteDetail,
    page,
  );
  for (const said of [': 1 run, 0 failed.', 'A run takes ', 'Calls of one run:', ': 4.0 runs/s, '])
    expect(text).toContain(said);
  expect(text).not.toMatch(/request/i);
});

it('a verdict is explained with the command that explains its route', () => {
  expect(explainProblems(data, page)).toContain(
    "- GET /reports/:id is slower since 09:00 UTC. [requests]\n  npx nestjs-perf explain http://localhost:3000/perf/ 'GET /reports/:id'",
  );
});

it('a command that is proposed is one for a shell, whatever is in the name of a route', () => {
  const now = [{ level: 'bad', section: 'requests', text: "GET /a';reboot;' is slower since 09:00 UTC." }] as const;
  const quoted = { ...data, sections: { ...data.sections, now: [...now] } };
  expect(explainProblems(quoted, page)).toContain(`'GET /a'\\'';reboot;'\\'''\n`);
});

it('of a route are the problems that name it, and not those of a longer path', () => {
  const row = { name: 'GET /reports', ms: [1, 1, 1, 1, 1], count: 3 };
  const now = ['GET /reports is slow.', 'GET /reports/:id is slow.', 'It is GET /reports, mostly.'].map((text) => ({
    text,
  }));
  const named = { ...data, sections: { blocks: [], now } } as unknown as DashboardData;
  const text = explainRoute(named, { row, upstream: [] } as unknown as RouteDetail, page);
  expect(text).toContain('What is wrong now:\n- GET /reports is slow.\n- It is GET /reports, mostly.\n\n');
});

it('of a resolver has its name once, and a block without a line the frame of a package', () => {
  const name = 'GRAPHQL ReportsResolver.find';
  const row = { name, handler: 'ReportsResolver.find', ms: [1, 1, 1, 1, 1], count: 3 };
  const stack = ['parse (node_modules/parser/index.js:1:2)'];
  const blocks = [{ ...block, route: name, handler: 'ReportsResolver.find', location: null, stack }];
  const named = { ...data, sections: { blocks, now: [] } } as unknown as DashboardData;
  const text = explainRoute(named, { row, upstream: [] } as unknown as RouteDetail, page);
  expect(text).toMatch(/^# GRAPHQL ReportsResolver\.find\n/);
  expect(text).toContain(`- ${name} blocks the event loop for 300 ms in parse (node_modules/parser/index.js:1:2)`);
});
