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
        const { group } = sample.find(session);
        if (sample.keeps(group)) sample.add(group, (allowed * tenth) / 10 + allowed);
      }
    }
  }
  return new Set([...perSecond.keys()].filter((session) => sample.keeps(sample.find(session).group)));
}

const users = (count: number, rate: number): [string, number][] =>
  Array.from({ length: count }, (_, i) => [`user ${i}`, rate]);

it('a session that takes more than half of the room leaves it to the others', () => {
  const sessions = kept(new Map([['crawler', 30], ...users(100, 0.15)]), 20);
  expect(sessions.has('crawler')).toBe(false);
  // One in forty times a user shares the crawler's group.
  expect(sessions.size).toBeGreaterThan(95);
});

it('a burst at the beginning shuts nobody out where there is room for all of it in the whole', () => {
  const sample = new SessionSample();
  // Ten minutes at 20 a second: one session of 300 in the first second, then 5 a second of 300 others.
  const room = 20 * 600;
  const come = (session: string): void => {
    const { group } = sample.find(session);
    expect(sample.keeps(group)).toBe(true);
    sample.add(group, room);
  };
  for (let i = 0; i < 300; i++) come('the first');
  for (let i = 0; i < 5 * 600; i++) come(`user ${i % 300}`);
  sample.end(room);
  for (let i = 0; i < 300; i++) expect(sample.keeps(sample.find(`user ${i}`).group)).toBe(true);
});

it('a recording that ends early keeps no more than there was room for until then', () => {
  const sample = new SessionSample();
  const counts = new Map<string, number>();
  for (let i = 0; i < 1_000; i++) {
    const session = `user ${i % 200}`;
    counts.set(session, (counts.get(session) ?? 0) + 1);
    sample.add(sample.find(session).group, 12_000);
  }
  sample.end(200);
  const kept = [...counts].filter(([session]) => sample.keeps(sample.find(session).group));
  const requests = kept.reduce((sum, [, count]) => sum + count, 0);
  expect(requests).toBeLessThanOrEqual(200);
  expect(requests).toBeGreaterThan(150);
});

it('of too many sessions some are kept as a whole, about as many as there is room for', () => {
  const sessions = kept(new Map(users(400, 0.2)), 20);
  expect(sessions.size).toBeGreaterThan(40);
  expect(sessions.size).toBeLessThan(160);
});
