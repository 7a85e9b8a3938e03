import { expect, it } from 'vitest';
import { HeavyUsers } from '../../../src/users/heavy-users.js';

const MINUTE = 60_000;

it('the heaviest of five thousand users is found, and its figures are inside the stated bounds', () => {
  const users = new HeavyUsers(512, () => 0);
  const truth = { count: 0, totalMs: 0 };
  for (let i = 0; i < 50_000; i++) {
    users.add({ unit: `user-${(i * 7919) % 5_000}`, route: 'GET /feed', durationMs: 3, upstreamMs: 1 });
    if (i % 25 !== 0) continue;
    users.add({ unit: 'heavy', route: 'GET /feed', durationMs: 40, upstreamMs: 30 });
    truth.count += 1;
    truth.totalMs += 40;
  }
  const [first] = users.list('totalMs');
  expect(first).toMatchObject({ unit: 'heavy', route: 'GET /feed' });
  for (const by of ['totalMs', 'count'] as const) {
    const row = users.list(by).find(({ unit }) => unit === 'heavy')!;
    expect(row[by]).toBeGreaterThanOrEqual(truth[by]);
    expect(row[`${by}AtLeast`]).toBeLessThanOrEqual(truth[by]);
  }
  expect(first!.totalMsAtLeast).toBeGreaterThan(0.9 * truth.totalMs);
  expect(users.list('count').length).toBeLessThanOrEqual(512);
});

it('what is older than an hour is forgotten, and one route can be asked for', () => {
  let nowMs = 0;
  const users = new HeavyUsers(8, () => nowMs);
  users.add({ unit: 'old', route: 'GET /a', durationMs: 1_000, upstreamMs: 0 });
  nowMs = 50 * MINUTE;
  users.add({ unit: 'new', route: 'GET /a', durationMs: 10, upstreamMs: 4 });
  users.add({ unit: 'new', route: 'GET /b', durationMs: 5, upstreamMs: 0 });
  expect(users.list('totalMs').map(({ unit, route }) => `${unit} ${route}`)).toEqual([
    'old GET /a',
    'new GET /a',
    'new GET /b',
  ]);
  nowMs = 70 * MINUTE;
  expect(users.list('totalMs', 'GET /a')).toEqual([
    { unit: 'new', route: 'GET /a', count: 1, countAtLeast: 1, totalMs: 10, totalMsAtLeast: 10, upstreamMs: 4 },
  ]);
});
