import { expect, it } from 'vitest';
import { problemsOf } from '../../../src/dashboard/problems.js';
import { RecentCounts } from '../../../src/dashboard/recent-counts.js';
import { RecentRecords } from '../../../src/dashboard/recent-records.js';
import { blockRecord } from '../../fixtures/records.js';
import { everything } from '../../fixtures/sink-host.js';

it('garbage collection that nobody is to blame for has its name', () => {
  const snapshot = everything().snapshot();
  const records = new RecentRecords();
  const nobody = { at: snapshot.at, request: null, suspect: null, location: null };
  for (const cause of ['gc', 'not-scheduled', 'pile-up', 'unknown'] as const)
    records.hear(blockRecord({ ...nobody, cause, durationMs: 60 }));
  const problems = (blocks: ReturnType<RecentRecords['blocks']>) =>
    problemsOf({
      snapshot: { ...snapshot, findings: [], upstream: [] },
      reasons: [],
      verdicts: [],
      nameOf: (userId) => userId,
      routes: [],
      blocks,
      recent: new RecentCounts(),
      rejected: [],
    })
      .filter(({ section }) => section === 'blocks')
      .map(({ text }) => text.replace(/ 1 time in .*/, ''));
  expect(records.blocks().flatMap((block) => problems([block]))).toEqual([
    'Something blocked the event loop',
    'Short pieces of work piled up on the event loop',
    'The operating system kept the process waiting',
    'Garbage collection blocked the event loop',
  ]);
});
