import { expect, it } from 'vitest';
import type { RequestTime, UpstreamUse } from '../../../src/core/record.js';
import { slowText } from '../../../src/sinks/slow-lines.js';
import { requestRecord } from '../../fixtures/records.js';

const IDLE: RequestTime = {
  upstreamMs: 0,
  poolWaitMs: 0,
  idleMs: 1_185,
  busyMs: 25,
  upstreamBusyMs: 0,
  unplacedCalls: 0,
};
const CALL: UpstreamUse = { target: 'sql db', kind: 'sql', calls: 1, wallMs: 5, maxMs: 5, errors: 0 };
const lineOf = (time: RequestTime | null, upstream: UpstreamUse[] | null): string =>
  slowText(requestRecord({ durationMs: 1_210, time, upstream }), false);

it('a slow request that was idle for most of it, and called nobody that is heard, says so', () => {
  expect(lineOf(IDLE, [])).toBe(
    'GET /users/:id (UsersController.findOne) took 1210 ms: status 200, 1185 ms idle: waiting for a timer, for I/O that is not instrumented, or for the client, id r-1',
  );
});

it.each<[string, RequestTime | null, UpstreamUse[] | null]>([
  ['was busy for most of it', { ...IDLE, idleMs: 600, busyMs: 610 }, []],
  ['has called somebody', IDLE, [CALL]],
  ['may have called somebody', { ...IDLE, unplacedCalls: 1 }, []],
  ['is not split', null, null],
])('one that %s does not', (_which, time, upstream) => {
  expect(lineOf(time, upstream)).toBe('GET /users/:id (UsersController.findOne) took 1210 ms: status 200, id r-1');
});

it('a request that has waited for a connection of a pool says for how long', () => {
  expect(lineOf({ ...IDLE, poolWaitMs: 310.4, idleMs: 400, busyMs: 499.6 }, [CALL])).toBe(
    'GET /users/:id (UsersController.findOne) took 1210 ms: status 200, 310 ms waiting for a connection of a pool, id r-1',
  );
});

it.each<[string, Partial<UpstreamUse>[], string]>([
  ['an upstream', [{ calls: 1 }], '1246 ms waiting for sql db (1 call)'],
  [
    'several, and names the one whose calls took longest',
    [{ wallMs: 200 }, { target: 'redis cache', calls: 48, wallMs: 1_046 }],
    '1246 ms waiting for upstreams, most of it for redis cache (48 calls)',
  ],
])('a request that has waited for %s for most of its time says so', (_what, uses, text) => {
  const time = { ...IDLE, upstreamMs: 1_246, idleMs: 20, busyMs: 44 };
  const upstream = uses.map((use) => ({ ...CALL, ...use }));
  const record = requestRecord({ durationMs: 1_310, time, upstream });
  expect(slowText(record, false)).toContain(`: status 200, ${text}, id r-1`);
  expect(slowText({ ...record, durationMs: 2_600 }, false)).not.toContain('waiting for');
});

it('a delayed request blames no other request: a job, a collection of garbage and a busy host stop the event loop too', () => {
  expect(slowText(requestRecord({ durationMs: 1_210, delayedMs: 440 }), false)).toContain(
    ', delayed 440 ms while the event loop stood still, ',
  );
});
