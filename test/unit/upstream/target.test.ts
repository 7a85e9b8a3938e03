import { expect, it } from 'vitest';
import { Targets } from '../../../src/upstream/target.js';

it('cuts a long name of a target, whoever gives it', () => {
  const targets = new Targets({ target: ({ host }) => host, maxTargets: 10 }, { report() {} } as never);
  const long = 'a'.repeat(300);
  const made = targets.of({ kind: 'http', host: long, method: 'GET', path: '/' });
  expect(made.name).toBe('a'.repeat(100));
  // `perf.timed()` and `perf.watch()`.
  expect(targets.named(long, 'other')).toBe(made);
});
