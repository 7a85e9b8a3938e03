import { describe, expect, it } from 'vitest';
import * as fc from 'fast-check';
import { PerfError } from '../../../../src/core/perf.error.js';
import { compareVariants } from '../../../../src/experiments/statistics/compare-variants.js';
import type { UnitTotals } from '../../../../src/experiments/statistics/comparison.js';
import { drawUnits } from '../../../fixtures/experiments/simulate.js';
import { SeededRandom } from '../../../fixtures/experiments/seeded-random.js';

const ON_OFF = { control: 'off', treatment: 'on' } as const;
const row = (unit: string, variant: string, count: number, sum: number): UnitTotals => ({ unit, variant, count, sum });
const NO_ANSWER = { relativeDelta: 0, ci: [-Infinity, Infinity], pValue: 1, minimumDetectableEffect: Infinity };

describe('compareVariants', () => {
  it('compares the sums over the counts, not the averages of the units', () => {
    const units = [row('a', 'off', 1, 100), row('b', 'off', 9, 1_800), row('c', 'on', 5, 500), row('d', 'on', 5, 400)];
    const { control, treatment, relativeDelta } = compareVariants(units, ON_OFF);
    expect(control).toEqual({ units: 2, count: 10, mean: 190 });
    expect(treatment).toEqual({ units: 2, count: 10, mean: 90 });
    expect(relativeDelta).toBeCloseTo(90 / 190 - 1, 14);
  });

  it('adds up the rows of one unit, so that requests cannot pass for units', () => {
    const random = new SeededRandom(7);
    const perRequest = Array.from({ length: 400 }, (_, i) => {
      const variant = i % 2 === 0 ? 'on' : 'off';
      return row(`${variant} ${i % 8}`, variant, 1, 10 * random.logNormal(0.5));
    });
    expect(compareVariants(perRequest, ON_OFF).control.units).toBe(4);
    expect(compareVariants(perRequest, ON_OFF).treatment.units).toBe(4);
  });

  it('does not depend on the order of the rows, and turns around with the variants', () => {
    const units = drawUnits(new SeededRandom(3), { unitsPerArm: 12, unitEffect: 0.1, effect: -0.2 });
    const options = { control: 'control', treatment: 'treatment' };
    const forth = compareVariants(units, options);
    expect(compareVariants(units.toReversed(), options).pValue).toBeCloseTo(forth.pValue, 12);
    const back = compareVariants(units, { control: 'treatment', treatment: 'control' });
    expect(1 + back.relativeDelta).toBeCloseTo(1 / (1 + forth.relativeDelta), 12);
  });

  it('widens the interval for a smaller alpha', () => {
    const units = drawUnits(new SeededRandom(3), { unitsPerArm: 12, unitEffect: 0.1, effect: -0.2 });
    const width = (alpha: number): number => {
      const { ci } = compareVariants(units, { control: 'control', treatment: 'treatment', alpha });
      return ci[1] - ci[0];
    };
    expect(width(0.01)).toBeGreaterThan(width(0.05) * 1.2);
    expect(width(0.05)).toBeGreaterThan(width(0.2) * 1.2);
  });

  it.each([false, true])('rejects exactly where its interval leaves out 0 (sequential: %s)', (sequential) => {
    const noise = [3, -2, 1, -4, 2, 0, -1, 1];
    const at = (effect: number) =>
      compareVariants(
        noise.flatMap((x, i) => [row(`c${i}`, 'off', 1, 100 + x), row(`t${i}`, 'on', 1, 100 + effect - x)]),
        { ...ON_OFF, sequential },
      );
    let [low, high] = [0, 50];
    while (high - low > 1e-9) {
      const effect = (low + high) / 2;
      if (at(effect).pValue > 0.05) low = effect;
      else high = effect;
    }
    expect(at(high).ci[0]).toBeCloseTo(0, 6);
    expect(at(high * 1.01).ci[0]).toBeGreaterThan(0);
    expect(at(high * 0.99).ci[0]).toBeLessThan(0);
  });

  it('asks more of an effect when people may look whenever they like', () => {
    const units = drawUnits(new SeededRandom(3), { unitsPerArm: 50, unitEffect: 0.1, effect: -0.1 });
    const options = { control: 'control', treatment: 'treatment' };
    const [fixed, sequential] = [
      compareVariants(units, options),
      compareVariants(units, { ...options, sequential: true }),
    ];
    expect(sequential.ci[1] - sequential.ci[0]).toBeGreaterThan(1.2 * (fixed.ci[1] - fixed.ci[0]));
    expect(sequential.pValue).toBeGreaterThan(fixed.pValue);
  });

  it('finds an effect of its own minimum detectable size in 80 % of experiments', () => {
    const random = new SeededRandom(11);
    const world = { unitsPerArm: 40, unitEffect: 0.1, effect: 0 };
    const arms = { control: 'control', treatment: 'treatment' };
    let effect = 0;
    for (let run = 0; run < 100; run++) {
      effect += compareVariants(drawUnits(random, world), arms).minimumDetectableEffect / 100;
    }
    let found = 0;
    for (let run = 0; run < 500; run++) {
      const units = drawUnits(random, { ...world, effect });
      if (compareVariants(units, arms).pValue < 0.05) found += 1;
    }
    expect(found / 500).toBeGreaterThan(0.72);
    expect(found / 500).toBeLessThan(0.88);
  });
});

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
    const units = [row('a', 'off', 3, 30), row('b', 'off', 7, 70), row('c', 'on', 3, 24), row('d', 'on', 9, 72)];
    expect(compareVariants(units, { ...ON_OFF, sequential })).toMatchObject({ pValue: 0, minimumDetectableEffect: 0 });
    const same = units.map((unit) => ({ ...unit, sum: unit.count * 0.1 }));
    expect(compareVariants(same, { ...ON_OFF, sequential })).toMatchObject({ relativeDelta: 0, ci: [0, 0], pValue: 1 });
  });

  const good = row('a', 'off', 1, 1);
  it.each<[string, unknown, object, string]>([
    [
      'NaN',
      [{ ...good, sum: NaN }],
      ON_OFF,
      '`units[0].sum` must be a number from -1e100 to 1e100, got `NaN` (number).',
    ],
    [
      'no end',
      [good, { ...good, count: Infinity }],
      ON_OFF,
      '`units[1].count` must be a number from 0 to 1e100, got `Infinity` (number).',
    ],
    [
      'a negative count',
      [{ ...good, count: -1 }],
      ON_OFF,
      '`units[0].count` must be a number from 0 to 1e100, got `-1` (number).',
    ],
    [
      'a sum of nothing',
      [{ ...good, count: 0 }],
      ON_OFF,
      '`units[0].sum` must be 0, because `count` is 0, got `1` (number).',
    ],
    [
      'half a pre-period',
      [{ ...good, beforeCount: 2 }],
      ON_OFF,
      '`units[0].beforeSum` must be a number from -1e100 to 1e100, got `undefined`.',
    ],
    [
      'a negative pre-period',
      [{ ...good, beforeCount: -2, beforeSum: 1 }],
      ON_OFF,
      '`units[0].beforeCount` must be a number from 0 to 1e100, got `-2` (number).',
    ],
    ['a unit without a name', [{ ...good, unit: 7 }], ON_OFF, '`units[0].unit` must be a string, got `7` (number).'],
    ['no row', [null], ON_OFF, '`units[0]` must be an object, got `null`.'],
    ['no list', 'rows', ON_OFF, '`units` must be an array of unit totals, got `"rows"` (string).'],
    [
      'a variant nobody named',
      [{ ...good, variant: 'blue' }],
      ON_OFF,
      '`units[0].variant` must be `"off"` or `"on"`, got `"blue"` (string). Leave out the rows of other variants.',
    ],
    [
      'equal variants',
      [good],
      { control: 'off', treatment: 'off' },
      '`options.treatment` must be the name of a variant other than the control, got `"off"` (string).',
    ],
    [
      'a missing variant',
      [good],
      { treatment: 'off' },
      '`options.control` must be the name of a variant, got `undefined`.',
    ],
    [
      'an alpha of 1',
      [good],
      { ...ON_OFF, alpha: 1 },
      '`options.alpha` must be a number between 0 and 1, got `1` (number).',
    ],
    [
      'an alpha of NaN',
      [good],
      { ...ON_OFF, alpha: NaN },
      '`options.alpha` must be a number between 0 and 1, got `NaN` (number).',
    ],
    [
      'a share of 0',
      [good],
      { ...ON_OFF, treatmentShare: 0 },
      '`options.treatmentShare` must be a number between 0 and 1, or null, got `0` (number).',
    ],
    [
      'a mode that is no boolean',
      [good],
      { ...ON_OFF, sequential: 1 },
      '`options.sequential` must be `true` or `false`, got `1` (number).',
    ],
    ['no options', [good], undefined as never, '`options` must be an object, got `undefined`.'],
  ])('refuses %s', (_name, units, options, message) => {
    const compare = (): unknown => compareVariants(units as UnitTotals[], options as typeof ON_OFF);
    expect(compare).toThrow(PerfError);
    expect(compare).toThrow(expect.objectContaining({ code: 'PERF_ERR_UNITS', message: `PERF_ERR_UNITS: ${message}` }));
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
      { numRuns: 2_000, seed: 5 },
    );
  });
});
