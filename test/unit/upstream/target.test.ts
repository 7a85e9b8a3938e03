import { expect, it } from 'vitest';
import { Targets } from '../../../src/upstream/target.js';

it('cuts a long name of a target, whoever gives it', () => {
  const targets = new Targets({ target: ({ host }) => host, maxTargets: 10 }, { report() {} } as never);
  const long = 'a'.repeat(300);
  const made = targets.find('http', 'http', long, 'GET', '/');
  expect(made.name).toBe('a'.repeat(100));
  // `perf.timed()` and `perf.watch()`.
  expect(targets.named(long, 'other')).toBe(made);
});

it('is one with those beyond the limit when it is named so', () => {
  const targets = new Targets({ target: ({ host }) => host, maxTargets: 2 }, { report() {} } as never);
  for (const host of ['other', 'a', 'b', 'c', 'other']) targets.find('http', 'http', host, 'GET').calls += 1;
  expect(targets.all.map(({ name, calls }) => [name, calls])).toEqual([
    ['a', 1],
    ['b', 1],
    ['other', 3],
  ]);
});
