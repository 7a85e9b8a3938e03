import { expect, it } from 'vitest';
import { findProblems } from '../../../src/dashboard/problems.js';
import type { Lately } from '../../../src/dashboard/lately.js';
import { RecentRecords } from '../../../src/dashboard/recent-records.js';
import { blockRecord } from '../../fixtures/records.js';
import { everything } from '../../fixtures/sink-host.js';

const NONE: Lately = { spanMs: 0, counts: new Map() };
const NOTHING = {
  reasons: [],
  verdicts: [],
  nameUser: (userId: string) => userId,
  blocks: [],
  rejected: [],
  routes: NONE,
  calls: NONE,
  deferred: NONE,
};

it('a reason of the health check leads to the section of the feature that knows it, whatever its words', () => {
  const snapshot = { ...everything().snapshot(), findings: [], upstream: [], resources: null };
  const told = (['event-loop', 'resources', 'defer', 'cached-data'] as const).map((about) => {
    const [problem] = findProblems({ ...NOTHING, snapshot, reasons: [{ about, text: 'deferred memory: throttling' }] });
    return problem;
  });
  expect(told.map((problem) => problem!.section)).toEqual(['blocks', 'container', 'deferred', 'requests']);
  expect(told[0]).toMatchObject({ level: 'bad', text: 'Deferred memory: throttling.' });
});

it('garbage collection that nobody is to blame for has its name', () => {
  const snapshot = everything().snapshot();
  const records = new RecentRecords();
  const nobody = { at: snapshot.at, request: null, suspect: null, location: null };
  for (const cause of ['gc', 'not-scheduled', 'pile-up', 'unknown'] as const)
    records.add(blockRecord({ ...nobody, cause, durationMs: 60 }));
  const problems = (blocks: ReturnType<RecentRecords['blocks']>) =>
    findProblems({ ...NOTHING, snapshot: { ...snapshot, findings: [], upstream: [] }, blocks })
      .filter(({ section }) => section === 'blocks')
      .map(({ text }) => text.replace(/ 1 time in .*/, ''));
  expect(records.blocks().flatMap((block) => problems([block]))).toEqual([
    'Something blocked the event loop',
    'Short pieces of work piled up on the event loop',
    'The operating system kept the process waiting',
    'Garbage collection blocked the event loop',
  ]);
});

it('pauses of the whole process are one row without a line, whichever code they met', () => {
  const records = new RecentRecords();
  for (const location of ['src/a.ts:1:1', 'src/b.ts:2:2']) {
    const nobody = { request: null, suspect: null, stack: [`run (${location})`] };
    records.add(blockRecord({ ...nobody, location, cause: 'not-scheduled', durationMs: 60 }));
  }
  expect(records.blocks().map(({ row }) => [row.count, row.location, row.stack])).toEqual([[2, null, []]]);
});

it('the stack of a block has the frame of its line, however deep and long it is: the flame graph opens at it', () => {
  const records = new RecentRecords();
  const location = `${'packages/api/'.repeat(15)}reports.ts:14:20`;
  const above = Array.from({ length: 9 }, (_, i) => `step${i} (node_modules/orm/query.js:${i}:1)`);
  records.add(blockRecord({ location, stack: [...above, `render (${location})`, 'main (src/main.ts:1:1)'] }));
  const [{ row } = { row: null }] = records.blocks();
  expect(row?.stack).toEqual([...above.slice(0, 5), `render (${location})`]);
});

it('waits for one pool are the first three routes and a count: behind it every route waits', () => {
  const finding = (kind: string, name: string) => ({ kind, route: `GET /${name}`, text: `GET /${name} ${kind}` });
  const waits = ['a', 'b', 'c', 'd', 'e'].map((name) => finding('pool-wait', name));
  const findings = [...waits, finding('repeated-calls', 'f')];
  const snapshot = { ...everything().snapshot(), findings, upstream: [], resources: null };
  expect(findProblems({ ...NOTHING, snapshot }).map(({ text }) => text)).toEqual([
    'GET /f repeated-calls.',
    'GET /a pool-wait.',
    'GET /b pool-wait.',
    'GET /c pool-wait.',
    '2 more routes wait for connections.',
  ]);
});
