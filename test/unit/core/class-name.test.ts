import { runInThisContext } from 'node:vm';
import { expect, it } from 'vitest';
import { isMinified } from '../../../src/core/class-name.js';

const classOf = (source: string) => runInThisContext(`(${source})`) as Function;

it.each([
  ['class a{b(){return`\n`}}', true],
  ['class a extends Object{}', true],
  ['function i(){}', true],
  ['class s {}', true],
  ['class JE{}', true],
  ['class xxe{}', true],
  ['class Xy extends Object.assign(Object,{c:1}){}', true],
  // Written by people.
  ['class S3 {}', false],
  ['class Db {\n}', false],
  ['class Reports{}', false],
  ['class S3 extends Object.assign(Object, { a: 1 }) {}', false],
  // No class at all.
  ['() => 1', false],
  // `keepNames`
  ['class e{static{Object.defineProperty(this,"name",{value:"Reports"})}}', false],
])('a minifier has named `%s`: %s', (source, expected) => {
  expect(isMinified(classOf(source))).toBe(expected);
});
