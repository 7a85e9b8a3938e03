import jstat from 'jstat';
import { describe, expect, it } from 'vitest';
import { answerDifferences } from '../../../packages/load/src/diff/answer-differences.js';
import type { Answer } from '../../../packages/load/src/client.js';
import { jsonDifferences } from '../../../packages/load/src/diff/json-differences.js';
import { mcNemar, estimateShift, standing, upperTail } from '../../../packages/load/src/diff/statistics.js';
import { normal, randomOf } from '../../fixtures/random.js';

describe('the statistics of diff', () => {
  it('know the tail of a normal distribution', () => {
    for (const z of [0, 0.3, 1, 1.96, 3, 5])
      expect(Math.abs(upperTail(z) - (1 - jstat.jStat.normal.cdf(z, 0, 1)))).toBeLessThan(2e-7);
  });

  it('know how likely it is that chance puts so many differences on one side', () => {
    expect(mcNemar(0, 0)).toBe(1);
    expect(mcNemar(1, 0)).toBeCloseTo(0.5, 12);
    expect(mcNemar(8, 0)).toBeCloseTo(2 ** -8, 12);
    expect(mcNemar(8, 2)).toBeCloseTo((1 + 10 + 45) / 1024, 12);
    expect(mcNemar(3, 3)).toBe(1);
    expect(mcNemar(4_000, 3_900)).toBeGreaterThan(0.1);
    expect(mcNemar(2_000, 0)).toBe(0);
  });

  it('have intervals that hold the truth 19 times of 20, whatever outliers there are', () => {
    const random = randomOf(7);
    let [held, alarms] = [0, 0];
    for (let i = 0; i < 400; i++) {
      const none = Array.from({ length: 40 }, () => normal(random) * (random() < 0.05 ? 20 : 1));
      const { low, high } = estimateShift(none.map((value) => value + 0.3));
      if (low <= 0.3 && 0.3 <= high) held += 1;
      if (estimateShift(none).pValue < 0.05) alarms += 1;
    }
    expect(held / 400).toBeGreaterThan(0.92);
    expect(alarms / 400).toBeLessThan(0.08);
    const clear = estimateShift(Array.from({ length: 40 }, () => 1 + normal(random) / 10));
    expect(clear.middle).toBeCloseTo(1, 1);
    expect(clear.pValue).toBeLessThan(1e-6);
  });

  it('let stand what one false alarm in twenty allows', () => {
    expect(standing([0.001, 0.02, 0.04, 0.5])).toEqual([true, true, false, false]);
    expect(standing([0.03, 0.03, 0.04])).toEqual([true, true, true]);
    expect(standing([0.2])).toEqual([false]);
    expect(standing([])).toEqual([]);
  });
});

const answered = (body: string | Buffer, given: Partial<Answer> = {}): Answer => ({
  status: 200,
  failure: null,
  body: Buffer.from(body),
  type: 'application/json',
  location: '',
  ...given,
});

describe('what differs between two answers', () => {
  const differences = (a: unknown, b: unknown): string[] =>
    jsonDifferences(a, b).map(({ kind, path }) => `${kind} ${path}`);

  it.each<[string, unknown, unknown, string[]]>([
    ['nothing', { a: [1, { b: null }] }, { a: [1, { b: null }] }, []],
    [
      'values and fields',
      { a: 1, b: { c: 'x' }, d: 1 },
      { a: 2, b: { e: 'x' }, d: 1 },
      ['value a', 'missing b.c', 'added b.e'],
    ],
    [
      'items, each place once',
      { a: [{ b: 1 }, { b: 2 }] },
      { a: [{ b: 3 }, { b: 4 }, {}] },
      ['length a', 'value a[].b'],
    ],
    ['types', { a: null, b: [], c: 1 }, { a: {}, b: {}, c: '1' }, ['type a', 'type b', 'type c']],
    ['the whole', 1, [1], ['type ']],
    ['names of prototypes', { constructor: 1 }, {}, ['missing constructor']],
  ])('%s', (_what, a, b, expected) => {
    expect(differences(a, b)).toEqual(expected);
  });

  it('is seen field by field in JSON under any spelling of its type, and behind a mark of the byte order', () => {
    const answer = (json: string) => answered(json, { type: 'Application/JSON ; charset=utf-8' });
    expect(answerDifferences(answer('\ufeff{"a":1,"b":1}'), answer('{"a":1,"b":2}'))).toEqual([
      { kind: 'value', path: 'b' },
    ]);
  });

  it('is seen in the whole of another body, and in its type where one of them is JSON', () => {
    const page = (text: string) => answered(text, { type: 'text/html' });
    expect(answerDifferences(page('<p>a'), page('<p>b'))).toEqual([{ kind: 'value', path: '' }]);
    expect(answerDifferences(answered('{"a":1}'), answered('{"a":'))).toEqual([{ kind: 'type', path: '' }]);
  });

  it('is seen in the type of its content, and in where it leads to', () => {
    const answer = (status: number, type: string, location: string) => answered('{}', { status, type, location });
    const found = (from: Answer, to: Answer): string[] =>
      answerDifferences(from, to).map(({ kind, path }) => `${kind} ${path}`);
    const json = answer(200, 'application/json', '/a');
    expect(found(json, answer(200, 'Application/JSON; charset=utf-8', '/b'))).toEqual([]);
    expect(found(json, answer(200, 'text/html', '/a'))).toEqual(['header content-type']);
    expect(found(answer(302, '', '/a'), answer(302, '', '/b'))).toEqual(['header location']);
    expect(found(json, answer(201, 'text/html', '/b'))).toEqual(['status ']);
  });

  it('is found far down a list, and deep inside', () => {
    const list = (last: number): object[] => [
      ...Array.from({ length: 9_000 }, () => ({ id: 1, name: 'x' })),
      { id: last },
    ];
    expect(differences(list(1), list(2))).toEqual(['value [].id']);
    const deep = (leaf: number, levels: number): unknown =>
      Array.from({ length: levels }).reduce((inner) => [inner], leaf as unknown);
    expect(differences({ a: deep(1, 30) }, { a: deep(2, 30) })).toEqual([`value a${'[]'.repeat(30)}`]);
  });

  it('has an end, however many places there are, and however deep', () => {
    const deep = (leaf: number): unknown =>
      Array.from({ length: 1_000 }).reduce((inner) => ({ inner }), leaf as unknown);
    expect(differences(deep(1), deep(2))).toEqual([]);
    const named = (prefix: string): object =>
      Object.fromEntries(Array.from({ length: 9_000 }, (_, i) => [`${prefix}${i}`, 1]));
    expect(differences(named('a'), named('b'))).toHaveLength(1_000);
  });
});
