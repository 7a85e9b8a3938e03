import { describe, expect, it } from 'vitest';
import { LineSample } from '../../../src/recording/line-sample.js';

/** A sample with its sessions, and without rare routes. */
class Sessions {
  readonly sample = new LineSample(0);
  private readonly lines: string[] = [];

  come(session: string, allowed: number): boolean {
    const { group } = this.sample.find(session);
    if (!this.sample.takes(group, 'GET /')) return false;
    this.sample.add(group, 'GET /', allowed);
    this.lines.push(session);
    return true;
  }

  /** Sessions that are kept, with the number of their lines. */
  end(allowed: number): Map<string, number> {
    const kept = new Map<string, number>();
    this.sample.end(allowed).forEach((fate, i) => {
      const session = this.lines[i]!;
      if (fate === 'session') kept.set(session, (kept.get(session) ?? 0) + 1);
    });
    return kept;
  }
}

/** Requests of these sessions, so many a second each, for five minutes, of which `allowed` a second may be kept. */
function kept(perSecond: ReadonlyMap<string, number>, allowed: number): Map<string, number> {
  const sessions = new Sessions();
  const due = new Map(perSecond);
  for (let tenth = 1; tenth <= 3_000; tenth++) {
    for (const [session, rate] of perSecond) {
      for (let left = due.get(session)! + rate / 10; ; left -= 1) {
        due.set(session, left);
        if (left < 1) break;
        sessions.come(session, (allowed * tenth) / 10 + allowed);
      }
    }
  }
  return sessions.end(allowed * 301);
}

const users = (count: number, rate: number): [string, number][] =>
  Array.from({ length: count }, (_, i) => [`user ${i}`, rate]);

describe('of sessions', () => {
  it('one that takes more than half of the room leaves it to the others', () => {
    const sessions = kept(new Map([['crawler', 30], ...users(100, 0.15)]), 20);
    expect(sessions.has('crawler')).toBe(false);
    // One in forty times a user shares the crawler's group.
    expect(sessions.size).toBeGreaterThan(95);
  });

  it('none is shut out by a burst at the beginning where there is room for all of it in the whole', () => {
    const sessions = new Sessions();
    // Ten minutes at 20 a second: one session of 300 in the first second, then 5 a second of 300 others.
    const room = 20 * 600;
    for (let i = 0; i < 300; i++) expect(sessions.come('the first', room)).toBe(true);
    for (let i = 0; i < 5 * 600; i++) expect(sessions.come(`user ${i % 300}`, room)).toBe(true);
    expect(sessions.end(room).size).toBe(301);
  });

  it('no more are kept by a recording that ends early than there was room for until then', () => {
    const sessions = new Sessions();
    for (let i = 0; i < 1_000; i++) sessions.come(`user ${i % 200}`, 12_000);
    const requests = [...sessions.end(200).values()];
    const sum = requests.reduce((total, count) => total + count, 0);
    expect(sum).toBeLessThanOrEqual(200);
    expect(sum).toBeGreaterThan(150);
    expect(new Set(requests)).toEqual(new Set([5]));
  });

  it('some are kept as a whole where there are too many, about as many as there is room for', () => {
    const sessions = kept(new Map(users(400, 0.2)), 20);
    expect(sessions.size).toBeGreaterThan(40);
    expect(sessions.size).toBeLessThan(160);
  });
});

it('lines of sessions that are not kept stay alone while their route is short of lines', () => {
  const sample = new LineSample(2);
  for (const [group, route] of [
    [1, 'GET /a'],
    [4_095, 'GET /a'],
    [4_095, 'GET /b'],
    [4_095, 'GET /b'],
    [4_095, 'GET /b'],
    [1, 'GET /b'],
  ] as const)
    sample.add(group, route, 100);
  expect(sample.end(4)).toEqual(['session', 'alone', 'alone', 'out', 'out', 'session']);
  expect([sample.takes(4_095, 'GET /a'), sample.takes(4_095, 'GET /c'), sample.takes(1, 'GET /a')]).toEqual([
    false,
    true,
    true,
  ]);
});

it('a line holds a few bytes of memory, however many there are', () => {
  const sample = new LineSample(200);
  const count = 150_000;
  gc!();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < count; i++) sample.add(i % 4_096, `GET /${i % 100}`, Infinity);
  gc!();
  expect((process.memoryUsage().heapUsed - before) / count).toBeLessThan(24);
});
