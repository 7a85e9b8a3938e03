import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { mutations } from '../mutations/index.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const rows = mutations.map((mutation) => ({ ...mutation, title: `${mutation.table}: ${mutation.name}` }));

// `npm run test:long` applies them; this keeps the tables in step with the code they break.
it.each(rows)('the mutation can be applied: $title', ({ file, find, replace, tests }) => {
  expect(readFileSync(`${root}/${file}`, 'utf8').split(find), 'the text stands there exactly once').toHaveLength(2);
  expect(replace).not.toBe(find);
  for (const test of tests) expect(existsSync(`${root}/${test}`), test).toBe(true);
  expect(tests.length).toBeGreaterThan(0);
});

it('no two mutations have one name, so that a row can be chosen', () => {
  expect(new Set(rows.map(({ title }) => title)).size).toBe(rows.length);
});
