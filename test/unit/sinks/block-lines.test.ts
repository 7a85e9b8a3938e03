import { describe, expect, it } from 'vitest';
import type { BlockRecord, RequestRef } from '../../../src/core/record.js';
import { blockLines, nameBlockKind, repeatedFields, repeatedText } from '../../../src/sinks/block-lines.js';
import type { Repeated } from '../../../src/sinks/repeats.js';

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
  method: 'ReportsService.render',
  samples: 12,
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

it('names a message once, whose route is its handler', () => {
  const message = { ...ref('OrdersController.sum'), method: 'MESSAGE', handler: 'OrdersController.sum' };
  expect(blockLines({ ...block, request: message })[0]).toMatch(
    /^MESSAGE OrdersController\.sum blocked the event loop /,
  );
});

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
      'Code of no known request blocked the event loop for 312 ms in synchronous I/O at src/reports/render.ts:48:11 (renderRows)',
    ],
    [
      { ...nobody, location: null, stack: ['toString (native)', 'emit (node:events:519:28)'] },
      'Code of no known request blocked the event loop for 312 ms in toString (native)',
    ],
    [
      {
        ...nobody,
        location: null,
        stack: ['push (native)', 'on (node:events:1:1)', 'row (node_modules/orm/a.js:3:9)'],
      },
      'Code of no known request blocked the event loop for 312 ms in row (node_modules/orm/a.js:3:9)',
    ],
    [
      {
        ...nobody,
        location: null,
        stack: ['render (native)', 'proceed (/srv/node_modules/nestjs-perf/dist/shared/nestjs-perf.runtime.js:6:3)'],
      },
      'Code of no known request blocked the event loop for 312 ms in render (native)',
    ],
    [
      { ...nobody, cause: 'unknown', location: null, stack: [] },
      'The event loop was blocked for 312 ms, and no stack sample shows by what',
    ],
    [
      { ...nobody, cause: 'gc', gcMs: 300, location: null, stack: [] },
      'Garbage collection blocked the event loop for 312 ms (300 ms collecting)',
    ],
    [
      { ...nobody, cause: 'gc', gcMs: 300, location: null, stack: [], suspect: ref('/p') },
      'Garbage collection, probably during GET /p (ReportsController.get), blocked the event loop for 312 ms (300 ms collecting)',
    ],
    [
      { ...nobody, cause: 'pile-up', location: null, stack: [] },
      'The event loop was delayed 312 ms by many short tasks in a row',
    ],
    [
      { ...nobody, cause: 'not-scheduled' },
      'The process was not scheduled for 312 ms (CPU throttling, a busy host, or a stopped process)',
    ],
  ])('%#', (given, text) => {
    expect(blockLines(given).join('\n  ')).toBe(text);
  });
});

it('a process that gets no CPU is one kind of block, wherever it stands still', () => {
  const here: BlockRecord = { ...block, cause: 'not-scheduled' };
  expect(nameBlockKind({ ...here, location: 'src/a.ts:1:1', request: null })).toBe(nameBlockKind(here));
});

describe('a block that came again', () => {
  const again = { first: block, count: 2, totalMs: 200, maxMs: 120 };
  it.each<[Partial<Repeated<BlockRecord>>, string]>([
    [
      {},
      'GET /reports/:id (ReportsController.get) blocked the event loop 2 more times (200 ms in total) at src/reports/render.ts:48:11 (renderRows)',
    ],
    [
      { first: { ...block, cause: 'gc' }, count: 1 },
      'GET /reports/:id (ReportsController.get) blocked the event loop once more (200 ms in total) in garbage collection at src/reports/render.ts:48:11 (renderRows)',
    ],
    [
      { first: { ...nobody, cause: 'not-scheduled', location: null, stack: [] } },
      'The process was not scheduled 2 more times (200 ms in total)',
    ],
    [
      { first: { ...nobody, cause: 'pile-up', location: null, stack: [] } },
      'The event loop was delayed 2 more times (200 ms in total) by many short tasks in a row',
    ],
    [
      { first: { ...nobody, cause: 'unknown', location: null, stack: [] } },
      'The event loop was blocked 2 more times (200 ms in total), and no stack sample shows by what',
    ],
    [{ first: null }, 'The event loop was blocked 2 more times (200 ms in total) in other places'],
  ])('is one line with its cause: %#', (over, text) => {
    expect(repeatedText({ ...again, ...over })).toBe(text);
  });

  it('has the same as fields', () => {
    expect(repeatedFields(again)).toEqual({
      event: 'event_loop_blocks_repeated',
      count: 2,
      totalMs: 200,
      maxMs: 120,
      cause: 'javascript',
      location: 'src/reports/render.ts:48:11',
      proven: true,
      method: 'GET',
      route: '/reports/:id',
      handler: 'ReportsController.get',
    });
  });

  it('is of one kind with another of its route, line and cause, whatever the column', () => {
    const kind = nameBlockKind(block);
    expect(nameBlockKind({ ...block, location: 'src/reports/render.ts:48:20' })).toBe(kind);
    for (const over of [
      { request: ref('/other') },
      { location: 'src/reports/render.ts:49:11' },
      { cause: 'sync-io' as const },
      // Suspected before, proven now.
      { request: null, suspect: block.request },
    ]) {
      expect(nameBlockKind({ ...block, ...over })).not.toBe(kind);
    }
  });

  it('is of one kind with another in the same dependency, where no line of the application was seen', () => {
    const inCall = (call: string) => nameBlockKind({ ...block, location: null, stack: [call, 'native (native)'] });
    const kind = inCall('closeArrayGaps (node_modules/@nestjs/common/gaps.js:44:31)');
    expect(inCall('fill (node_modules/.pnpm/x/node_modules/@nestjs/common/fill.js:46:7)')).toBe(kind);
    expect(inCall('create (node_modules/@nestjs/core/create.js:9:1)')).not.toBe(kind);
    expect(inCall('transform (node_modules/class-transformer/executor.js:9:1)')).not.toBe(kind);
  });
});
