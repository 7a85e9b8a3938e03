import { expect, it } from 'vitest';
import { countRoutes, Gains } from '../../../src/dashboard/lately.js';
import { ScriptedHistory } from '../../fixtures/scripted-history.js';

const MINUTE_MS = 60_000;

it('counts the routes of the last five minutes, of this process alone', async () => {
  const scripted = new ScriptedHistory(Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - 10 * MINUTE_MS);
  await scripted.minutes(10, (counters) => counters.requests('GET /users', 60, 20));
  const { counts, spanMs } = await countRoutes(scripted.history, 3_600_000);
  const { count, errors } = counts.get('GET /users')!;
  expect([count, errors]).toEqual([60 * Math.floor(spanMs / MINUTE_MS), 0]);
});

it('has the gains of a counter in the last two minutes, and none across a longer gap', () => {
  const gains = new Gains();
  const add = (ms: number, count: number, errors: number) => gains.add(ms, new Map([['http a', { count, errors }]]));
  expect(add(0, 100, 7)).toEqual({ spanMs: 0, counts: new Map([['http a', { count: 0, errors: 0 }]]) });
  expect(add(2_000, 110, 9)).toEqual({ spanMs: 2_000, counts: new Map([['http a', { count: 10, errors: 2 }]]) });
  expect(add(600_000, 900, 99)).toEqual({ spanMs: 0, counts: new Map([['http a', { count: 0, errors: 0 }]]) });
});
