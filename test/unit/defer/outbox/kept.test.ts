import { expect, it } from 'vitest';
import { toJson } from '../../../../src/defer/durable/entry.js';
import { DeadLetters } from '../../../../src/defer/spill/dead-letters.js';
import { getOrAdd } from '../durable-entry.js';
import { RequestWork } from '../../../../src/defer/request-work.js';

it('dead letters are bounded in bytes: the oldest is let go, which is reported', async () => {
  const reports: string[] = [];
  const dead = new DeadLetters(null, (_, message) => reports.push(message));
  const data = 'x'.repeat(1024 * 1024 - 2);
  for (let i = 0; i < 40; i++) dead.add(getOrAdd(`${i}`, data), 'too large');
  expect(dead.list(0, 100).map(({ id }) => id)).toEqual(Array.from({ length: 16 }, (_, i) => `${24 + i}`));
  expect(reports[0]).toContain('the oldest, "receipt", was let go');
  expect(dead.take(undefined, 100)).toHaveLength(16);
});

it('a request holds nothing of what is on disk, however long it lasts', async () => {
  const work = new RequestWork(new Set());
  for (let i = 0; i < 3; i++)
    work.arm({ name: 'receipt', when: null, written: Promise.resolve(null), commit() {}, discard() {} });
  expect(work.writes).not.toBeNull();
  await work.writes;
  await Promise.resolve();
  expect(work.writes).toBeNull();
});

it.each([
  ['a promise', Promise.resolve({ id: 1 })],
  // oxlint-disable-next-line unicorn/no-thenable -- as Knex and Prisma make them
  ['a query that runs when it is awaited', { then: () => {} }],
])('data that is %s is refused, as JSON would lose it', (_, data) => {
  expect(() => toJson(data, 'work "mail"')).toThrow(/the data of work "mail" must be JSON.*await it first/);
});
