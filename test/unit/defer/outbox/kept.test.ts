import { expect, it } from 'vitest';
import { toJson } from '../../../../src/defer/outbox/json.js';
import { Rejects } from '../../../../src/defer/outbox/rejects.js';
import { RequestWork } from '../../../../src/defer/request-work.js';

it('rejects in memory are bounded in bytes: the oldest is let go, which is said', () => {
  const said: string[] = [];
  const rejects = new Rejects((_, message) => said.push(message));
  const bytes = 1024 * 1024;
  for (let i = 0; i < 150; i++) {
    const work = { id: `${i}`, name: 'mail', data: null, error: 'too large', rejectedAt: 0 };
    rejects.add(work, bytes, () => true);
  }
  expect(rejects.list({ offset: 0, limit: 100 }).map(({ id }) => id)).toEqual(
    Array.from({ length: 16 }, (_, i) => `${134 + i}`),
  );
  expect(said[0]).toContain('the oldest, "mail", was let go');
  expect(rejects.resend(undefined)).toBe(16);
});

it('a request holds nothing of what is on disk, however long it lasts', async () => {
  const work = new RequestWork(new Set());
  for (let i = 0; i < 3; i++) work.arm({ when: null, written: Promise.resolve(null), commit() {}, discard() {} });
  expect(work.written).not.toBeNull();
  await work.written;
  await Promise.resolve();
  expect(work.written).toBeNull();
});

it.each([
  ['a promise', Promise.resolve({ id: 1 })],
  // oxlint-disable-next-line unicorn/no-thenable -- as Knex and Prisma make them
  ['a query that runs when it is awaited', { then: () => {} }],
])('data that is %s is refused, as JSON would lose it', (_, data) => {
  expect(() => toJson(data, 'work "mail"')).toThrow(/the data of work "mail" must be JSON.*await it first/);
});
