import { expect, it } from 'vitest';
import { removeValues } from '../../../src/upstream/watch/statement.js';

it.each([
  ['SELECT * FROM t1 WHERE id = 42 AND x = -1.5e+3', 'SELECT * FROM t1 WHERE id = ? AND x = -?'],
  [`SELECT 'it''s', "a \\" b", 'c \\' d' FROM \`2024\`.\`it's 5\``, "SELECT ?, ?, ? FROM `2024`.`it's 5`"],
  ["INSERT INTO orders_2024 VALUES (1,'a\nb',0x1F,NULL)", 'INSERT INTO orders_2024 VALUES (?,?,?,NULL)'],
  ["SELECT 'left open", 'SELECT ?'],
  ['SELECT * FROM users WHERE id = ?', 'SELECT * FROM users WHERE id = ?'],
])('of %s no value is left', (statement, shape) => {
  expect(removeValues(statement)).toBe(shape);
});

it('cuts a long statement, and keeps nothing of a text that is cut', () => {
  const insert = `INSERT INTO t VALUES ('${'secret '.repeat(100_000)}')`;
  expect(removeValues(insert)).toBe('INSERT INTO t VALUES (?');
});
