import { expect, it } from 'vitest';
import { maskValues } from '../../../src/upstream/watch/statement.js';

it.each([
  [
    'select count(*) from "comment" as "c0" where "c0"."article_id" = 40',
    'select count(*) from "comment" as "c0" where "c0"."article_id" = ?',
  ],
  ["SELECT a FROM t1 WHERE name = 'it''s 7' AND price < 1.50", 'SELECT a FROM t1 WHERE name = ? AND price < ?'],
  ['SELECT * FROM orders_2024 WHERE id = $1', 'SELECT * FROM orders_2024 WHERE id = $?'],
  ["select 'open' union select ''", 'select ? union select ?'],
  ["select 'an open string 5", "select 'an open string ?"],
])('%s', (sql, masked) => {
  expect(maskValues(sql)).toBe(masked);
});

it('a long statement stays as it is', () => {
  const sql = `INSERT INTO lines VALUES ${'(1),'.repeat(2_000)}(2)`;
  expect(maskValues(sql)).toBe(sql);
});
