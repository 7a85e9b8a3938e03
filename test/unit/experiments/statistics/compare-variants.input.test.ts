import { describe, expect, it } from 'vitest';
import * as fc from 'fast-check';
import { PerfError } from '../../../../src/core/perf.error.js';
import { compareVariants } from '../../../../src/experiments/statistics/compare-variants.js';
import type { UnitTotals } from '../../../../src/experiments/statistics/compare-variants.js';

const ON_OFF = { control: 'off', treatment: 'on' } as const;
const row = (unit: string, variant: string, count: number, sum: number): UnitTotals => ({ unit, variant, count, sum });
const NO_ANSWER = { relativeDelta: 0, ci: [-Infinity, Infinity], pValue: 1, minimumDetectableEffect: Infinity };

describe('compareVariants, when there is little to say', () => {
  it.each<[string, UnitTotals[]]>([
    ['no units at all', []],
    ['an empty arm', [row('a', 'off', 5, 50), row('b', 'off', 5, 60)]],
    ['one unit in an arm', [row('a', 'off', 5, 50), row('b', 'on', 5, 60), row('c', 'on', 5, 60)]],
    ['nothing observed', [row('a', 'off', 0, 0), row('b', 'off', 0, 0), row('c', 'on', 1, 5), row('d', 'on', 1, 5)]],
    ['a control mean of 0', [row('a', 'off', 5, 0), row('b', 'off', 5, 0), row('c', 'on', 5, 1), row('d', 'on', 5, 0)]],
  ])('gives the whole line and p = 1 for %s', (_name, units) => {
    expect(compareVariants(units, ON_OFF)).toMatchObject(NO_ANSWER);
    expect(compareVariants(units, { ...ON_OFF, sequential: true })).toMatchObject(NO_ANSWER);
  });

  it.each([false, true])('is certain when no unit differs from its arm (sequential: %s)', (sequential) => {
    const arm = (variant: string, mean: number) =>
      Array.from({ length: 120 }, (_, i) => row(`${variant} ${i}`, variant, i + 1, (i + 1) * mean));
    const answer = compareVariants([...arm('off', 10), ...arm('on', 8)], { ...ON_OFF, sequential });
    expect(answer.minimumDetectableEffect).toBe(0);
    expect(answer.ci[0]).toBe(answer.ci[1]);
    expect(answer.pValue).toBeLessThan(1e-5);
    const same = compareVariants([...arm('off', 0.1), ...arm('on', 0.1)], { ...ON_OFF, sequential });
    expect(same).toMatchObject({ relativeDelta: 0, ci: [0, 0], pValue: 1 });
  });

  it.each([2, 3])('takes %s units that happen to agree for no proof, however far the arms are apart', (units) => {
    const arm = (variant: string, mean: number) =>
      Array.from({ length: units }, (_, i) => row(`${variant} ${i}`, variant, 1, mean));
    const answer = compareVariants([...arm('off', 1), ...arm('on', 0)], ON_OFF);
    // Dealt by chance, the arms come out like this in one of 3, or of 10, experiments.
    expect(answer).toMatchObject({ relativeDelta: -1, ci: [-Infinity, Infinity] });
    expect(answer.pValue).toBeCloseTo(units === 2 ? 1 / 3 : 1 / 10, 9);
  });

  it('never claims a fall beyond all there is, unless sums may be negative', () => {
    const few = [4, 9, 30];
    const many = Array.from({ length: 100 }, (_, i) => (i === 0 ? 1_000 : 1));
    const arm = (variant: string, sign: number, sums = few) =>
      sums.map((sum, i) => row(`${variant}${i}`, variant, 1, sign * sum));
    for (const sequential of [false, true]) {
      const sums = sequential ? many : few;
      const { ci } = compareVariants([...arm('off', 1, sums), ...arm('on', 1, sums)], { ...ON_OFF, sequential });
      expect(ci[0]).toBe(-1);
      expect(ci[1]).toBeGreaterThan(1);
    }
    const profit = compareVariants([...arm('off', 1), ...arm('on', -1)], ON_OFF);
    expect(profit.relativeDelta).toBeCloseTo(-2, 12);
    expect(profit.ci[0]).toBeLessThan(-2);
  });

  const refused = (units: unknown, options: unknown, message: string): void => {
    const compare = (): unknown => compareVariants(units as UnitTotals[], options as typeof ON_OFF);
    expect(compare).toThrow(PerfError);
    expect(compare).toThrow(expect.objectContaining({ code: 'PERF_ERR_UNITS', message: `PERF_ERR_UNITS: ${message}` }));
  };
  const good = row('a', 'off', 1, 1);

  it.each<[object, string]>([
    [{ sum: NaN }, '`units[1].sum` must be a number from -1e100 to 1e100, got `NaN` (number).'],
    [{ count: Infinity }, '`units[1].count` must be a number from 0 to 1e100, got `Infinity` (number).'],
    [{ count: -1 }, '`units[1].count` must be a number from 0 to 1e100, got `-1` (number).'],
    [{ count: 0 }, '`units[1].sum` must be 0, because `count` is 0, got `1` (number).'],
    [{ beforeCount: 2 }, '`units[1].beforeSum` must be a number from -1e100 to 1e100, got `undefined`.'],
    [{ beforeCount: -2, beforeSum: 1 }, '`units[1].beforeCount` must be a number from 0 to 1e100, got `-2` (number).'],
    [{ unit: 7 }, '`units[1].unit` must be a string, got `7` (number).'],
    [
      { variant: 'blue' },
      '`units[1].variant` must be `"off"` or `"on"`, got `"blue"` (string). Leave out the rows of other variants.',
    ],
  ])('refuses a row with %o', (wrong, message) => {
    refused([good, { ...good, ...wrong }], ON_OFF, message);
  });

  it.each<[object, string]>([
    [
      { treatment: 'off' },
      '`options.treatment` must be the name of a variant other than the control, got `"off"` (string).',
    ],
    [{ control: undefined }, '`options.control` must be the name of a variant, got `undefined`.'],
    [{ alpha: 1 }, '`options.alpha` must be a number between 0 and 1, got `1` (number).'],
    [{ alpha: NaN }, '`options.alpha` must be a number between 0 and 1, got `NaN` (number).'],
    [{ treatmentShare: 0 }, '`options.treatmentShare` must be a number between 0 and 1, or null, got `0` (number).'],
    [{ sequential: 1 }, '`options.sequential` must be `true` or `false`, got `1` (number).'],
  ])('refuses the options %o', (wrong, message) => {
    refused([good], { ...ON_OFF, ...wrong }, message);
  });

  it('refuses what is no row, no list and no options', () => {
    refused([null], ON_OFF, '`units[0]` must be an object, got `null`.');
    refused('rows', ON_OFF, '`units` must be an array of unit totals, got `"rows"` (string).');
    refused([good], undefined, '`options` must be an object, got `undefined`.');
  });

  it('never answers NaN, whatever the figures', () => {
    const size = fc.oneof(
      fc.double({ min: 0, max: 1e100, noNaN: true }),
      fc.nat(20),
      fc.constantFrom(1e-300, 5e-324, 1e-160),
    );
    const pair = fc
      .tuple(
        size,
        fc.oneof(
          size,
          size.map((value) => -value),
        ),
      )
      .map(([count, sum]) => [count, count === 0 ? 0 : sum] as const);
    const unit = fc
      .record({ variant: fc.constantFrom('on', 'off'), now: pair, before: fc.option(pair), name: fc.nat(40) })
      .map(({ variant, now, before, name }): UnitTotals => ({
        unit: `${name}`,
        variant,
        count: now[0],
        sum: now[1],
        ...(before === null ? {} : { beforeCount: before[0], beforeSum: before[1] }),
      }));
    const alpha = fc.oneof(
      fc.constantFrom(5e-324, 1e-30, 0.05, 1 - 2 ** -53),
      fc.double({ min: 1e-9, max: 0.999, noNaN: true }),
    );
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 30 }), alpha, fc.boolean(), (units, alpha, sequential) => {
        const answer = compareVariants(units, { ...ON_OFF, alpha, sequential });
        const { control, treatment, relativeDelta, ci, pValue, minimumDetectableEffect } = answer;
        const numbers = [control.mean, treatment.mean, control.count, relativeDelta, ...ci, minimumDetectableEffect];
        for (const number of numbers) expect(number).not.toBeNaN();
        for (const p of [pValue, answer.sampleRatioMismatch.pValue]) {
          expect(p).toBeGreaterThanOrEqual(0);
          expect(p).toBeLessThanOrEqual(1);
        }
        expect(ci[0]).toBeLessThanOrEqual(ci[1]);
      }),
      { numRuns: process.env['PERF_LONG'] === undefined ? 400 : 4_000, seed: 5 },
    );
  });
});
