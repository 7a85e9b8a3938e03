import { describe, expect, it } from 'vitest';
import type { BlockRecord, RequestRef } from '../../../src/core/record.js';
import { blockText, RepeatedBlocks } from '../../../src/sinks/block-lines.js';

const ref = (route: string): RequestRef => ({
  id: '1',
  method: 'GET',
  route,
  handler: 'ReportsController.get',
  url: '/',
  traceId: null,
});
const block: BlockRecord = {
  kind: 'block',
  startedAt: 0,
  durationMs: 312.4,
  provenMs: 290,
  cause: 'javascript',
  request: ref('/reports/:id'),
  suspect: null,
  location: 'src/reports/render.ts:48:11',
  stack: [
    'toString (native)',
    'renderRows (src/reports/render.ts:48:11)',
    'async get (src/reports/reports.controller.ts:9:5)',
  ],
  gcMs: 0,
  delayed: Array.from({ length: 14 }, () => ref('/x')),
  curl: "curl 'http://localhost/reports/7'",
  note: null,
};
const nobody = { ...block, request: null, curl: null, delayed: [] };

describe('a block as a line', () => {
  it.each<[BlockRecord, string]>([
    [
      block,
      'GET /reports/:id (ReportsController.get) blocked the event loop for 312 ms at src/reports/render.ts:48:11 (renderRows); 14 requests waited\n' +
        "  curl 'http://localhost/reports/7'",
    ],
    [
      { ...block, note: { rows: 9000, bytes: 3_000_000 }, delayed: [ref('/x')], curl: null },
      'GET /reports/:id (ReportsController.get) blocked the event loop for 312 ms at src/reports/render.ts:48:11 (renderRows), 9000 rows, 3000000 bytes; 1 request waited',
    ],
    [
      { ...nobody, suspect: ref('/p'), location: null, stack: [] },
      'Probably GET /p (ReportsController.get) blocked the event loop for 312 ms',
    ],
    [
      { ...nobody, cause: 'sync-io' },
      'Something blocked the event loop for 312 ms waiting at src/reports/render.ts:48:11 (renderRows)',
    ],
    [{ ...nobody, cause: 'unknown', location: null }, 'Something blocked the event loop for 312 ms'],
    [
      { ...nobody, cause: 'gc', gcMs: 300, location: null },
      'Garbage collection blocked the event loop for 312 ms (300 ms collecting)',
    ],
    [
      { ...nobody, cause: 'pile-up', location: null },
      'The event loop was late by 312 ms: many short pieces of work ran one after another',
    ],
    [
      { ...nobody, cause: 'not-scheduled', location: null },
      'The event loop stood still for 312 ms: the operating system did not let the process run',
    ],
  ])('%#', (given, text) => {
    expect(blockText(given)).toBe(text);
  });
});

describe('repeated blocks', () => {
  it('of one route and line are counted, whatever the column', () => {
    const repeated = new RepeatedBlocks();
    expect(repeated.isNew(block)).toBe(true);
    expect(repeated.isNew({ ...block, location: 'src/reports/render.ts:48:20', durationMs: 100 })).toBe(false);
    expect(repeated.isNew({ ...block, durationMs: 100 })).toBe(false);
    expect(repeated.takeRepeated()).toEqual([
      'GET /reports/:id (ReportsController.get) blocked the event loop 2 times more, 200 ms in all at src/reports/render.ts:48:11 (renderRows)',
    ]);
    expect(repeated.isNew(block)).toBe(true);
    expect(repeated.takeRepeated()).toEqual([]);
  });

  it('of another route, line or cause are told', () => {
    const repeated = new RepeatedBlocks();
    repeated.isNew(block);
    expect(repeated.isNew({ ...block, request: ref('/other') })).toBe(true);
    expect(repeated.isNew({ ...block, location: 'src/reports/render.ts:49:11' })).toBe(true);
    expect(repeated.isNew({ ...block, cause: 'sync-io' })).toBe(true);
  });

  it('of a request that was only suspected are told once more when it is proven', () => {
    const repeated = new RepeatedBlocks();
    const suspected = { ...nobody, suspect: block.request };
    expect([suspected, block, suspected, block].map((each) => repeated.isNew(each))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it('are told each time rather than remembered without bound', () => {
    const repeated = new RepeatedBlocks(1);
    repeated.isNew(block);
    const other = { ...block, location: 'x.ts:1:1' };
    expect([repeated.isNew(other), repeated.isNew(other)]).toEqual([true, true]);
  });
});
