import { expect, it } from 'vitest';
import { SessionSample } from '../../../src/recording/session-sample.js';

/** Requests of these sessions, so many a second each, for five minutes, of which `allowed` a second may be kept. */
function kept(perSecond: ReadonlyMap<string, number>, allowed: number): Set<string> {
  const sample = new SessionSample();
  const due = new Map(perSecond);
  for (let tenth = 1; tenth <= 3_000; tenth++) {
    for (const [session, rate] of perSecond) {
      for (let left = due.get(session)! + rate / 10; ; left -= 1) {
        due.set(session, left);
        if (left < 1) break;
        const { group } = sample.of(session);
        if (sample.keeps(group)) sample.add(group, (allowed * tenth) / 10 + allowed);
      }
    }
  }
  return new Set([...perSecond.keys()].filter((session) => sample.keeps(sample.of(session).group)));
}

const users = (count: number, rate: number): [string, number][] =>
  Array.from({ length: count }, (_, i) => [`user ${i}`, rate]);

it('a session that takes more than half of the room leaves it to the others', () => {
  const sessions = kept(new Map([['crawler', 30], ...users(100, 0.15)]), 20);
  expect(sessions.has('crawler')).toBe(false);
  // One in forty times a user shares the crawler's group.
  expect(sessions.size).toBeGreaterThan(95);
});

it('of too many sessions some are kept as a whole, about as many as there is room for', () => {
  const sessions = kept(new Map(users(400, 0.2)), 20);
  expect(sessions.size).toBeGreaterThan(40);
  expect(sessions.size).toBeLessThan(160);
});
