import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { HeavyUsers } from '../../../src/users/heavy-users.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heldBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

const USERS = 5_000;
const HOUR_MS = 3_600_000;

it('five thousand users and one heavy one cost no more memory after six hours than after two', () => {
  let nowMs = 0;
  const users = new HeavyUsers(512, () => nowMs);
  let [number, heavy] = [0, 0];
  /** New users every hour, and eight requests a second of simulated time. */
  const hours = (count: number): void => {
    for (const endMs = nowMs + count * HOUR_MS; nowMs < endMs; nowMs += 250) {
      const hour = Math.floor(nowMs / HOUR_MS);
      const unit = `user-${hour}-${(number++ * 7919) % USERS}`;
      for (const route of ['GET /feed', 'GET /search']) users.add({ unit, route, durationMs: 5, upstreamMs: 2 });
      if (number % 20 !== 0) continue;
      users.add({ unit: 'heavy', route: 'GET /feed', durationMs: 60, upstreamMs: 50 });
      if (nowMs >= 5 * HOUR_MS) heavy += 1;
    }
  };
  hours(2);
  const before = heldBytes();
  hours(4);
  expect(heldBytes() - before).toBeLessThan(2_000_000);
  const [first] = users.list('totalMs', 'GET /feed');
  expect(first!.unit).toBe('heavy');
  // The oldest of its parts may still hold five minutes of the hour before.
  expect(first!.countAtLeast).toBeLessThanOrEqual(heavy * (13 / 12) + 1);
  expect(first!.count).toBeGreaterThanOrEqual(heavy);
  expect(first!.totalMsAtLeast).toBeLessThanOrEqual(60 * heavy * (13 / 12) + 60);
  expect(first!.totalMs).toBeGreaterThanOrEqual(60 * heavy);
});

it('thirty thousand users within five minutes cost no more memory than the few that are kept', () => {
  const users = new HeavyUsers(512, () => 0);
  const before = heldBytes();
  for (let number = 0; number < 30_000; number++) {
    users.add({ unit: `user-${number}`, route: 'GET /feed', durationMs: 5, upstreamMs: 2 });
  }
  expect(heldBytes() - before).toBeLessThan(1_000_000);
  expect(users.list('totalMs')).toHaveLength(512);
});
