import { describe, expect, it } from 'vitest';
import { compareVariants, type UnitTotals } from '../../../../src/experiments/statistics/compare-variants.js';
import { comparePairs } from '../../../../src/experiments/statistics/paired.js';
import { normal, randomOf } from '../../../fixtures/random.js';

/** The full proof has so many runs; the bounded one two in five of them, with as much slack as chance needs. */
const LONG = process.env['PERF_LONG'] !== undefined;
const countRuns = (full: number): number => (LONG ? full : 0.4 * full);
const SLACK = LONG ? 0 : 0.02;

const ON_OFF = { control: 'off', treatment: 'on' } as const;

interface World {
  unitsPerArm: number;
  /** Of the logarithm of a unit's number of requests. */
  sigma: number;
  /** Share of all requests that one more unit has. */
  oneUnit: number;
  before: boolean;
}

function drawUnit(unit: string, variant: string, requests: number, before: boolean, random: () => number): UnitTotals {
  const count = Math.max(1, Math.round(requests));
  const meanMs = 50 * Math.exp(0.3 * normal(random));
  const sumMs = (): number => count * meanMs * (1 + (0.35 / Math.sqrt(count)) * normal(random));
  const row: UnitTotals = { unit, variant, count, sum: sumMs() };
  return before ? { ...row, beforeCount: count, beforeSum: sumMs() } : row;
}

/** Both variants alike. */
function drawUnits({ unitsPerArm, sigma, oneUnit, before }: World, random: () => number): UnitTotals[] {
  const units = ['on', 'off'].flatMap((variant) =>
    Array.from({ length: unitsPerArm }, (_, i) =>
      drawUnit(`${variant}${i}`, variant, 10 * Math.exp(sigma * normal(random)), before, random),
    ),
  );
  if (oneUnit === 0) return units;
  const requests = units.reduce((sum, { count }) => sum + count, 0) * (oneUnit / (1 - oneUnit));
  return [...units, drawUnit('one', random() < 0.5 ? 'on' : 'off', requests, before, random)];
}

/** Share of A/A experiments with p < 0.05. */
function foundIn(world: World, runs: number): number {
  const random = randomOf(11);
  let found = 0;
  for (let run = 0; run < runs; run++) {
    if (compareVariants(drawUnits(world, random), ON_OFF).pValue < 0.05) found += 1;
  }
  return found / runs;
}

describe.each([false, true])('an A/A experiment whose units differ in size (pre-period: %s)', (before) => {
  it.each([
    [10, 1],
    [10, 2],
    [100, 2],
  ])('finds nothing: %s units an arm, sigma %s', (unitsPerArm, sigma) => {
    const runs = countRuns(unitsPerArm === 10 ? 700 : 200);
    expect(foundIn({ unitsPerArm, sigma, oneUnit: 0, before }, runs)).toBeLessThan(0.075 + SLACK);
  });

  it.each([
    [10, 0.5],
    [100, 0.3],
    [100, 0.5],
  ])(
    'is not decided by one unit: %s units an arm, and one with a share of %s of all requests',
    (unitsPerArm, oneUnit) => {
      const runs = countRuns(unitsPerArm === 10 ? 700 : 200);
      expect(foundIn({ unitsPerArm, sigma: 0, oneUnit, before }, runs)).toBeLessThan(0.065 + SLACK);
    },
  );

  it('is significant in 5 % of runs where units are of one size', () => {
    const found = foundIn({ unitsPerArm: 10, sigma: 0, oneUnit: 0, before }, countRuns(1_500));
    expect(found).toBeGreaterThan(0.04 - SLACK);
    expect(found).toBeLessThan(0.06 + SLACK);
  });
});

it('says nothing where one unit is all of its arm, up to rounding', () => {
  const rows = ['on', 'off'].flatMap((variant, i) => [
    { unit: `${variant} one`, variant, count: 1e30, sum: 1e30 * (i + 1) },
    ...[3, 4, 5].map((sum) => ({ unit: `${variant} ${sum}`, variant, count: 1, sum })),
  ]);
  expect(compareVariants(rows, ON_OFF)).toMatchObject({ relativeDelta: 0, ci: [-Infinity, Infinity], pValue: 1 });
});

it('finds nothing in 95 % of A/A switchbacks whose pairs differ in load', () => {
  const random = randomOf(12);
  const runs = countRuns(800);
  let found = 0;
  for (let run = 0; run < runs; run++) {
    const pairs = Array.from({ length: 24 }, () => {
      const count = Math.ceil(1_000 * Math.exp(1.5 * normal(random)));
      const row = () => ({ count, sum: count * 50 * Math.exp(0.1 * normal(random)), beforeCount: 0, beforeSum: 0 });
      return { control: row(), treatment: row() };
    });
    if (comparePairs(pairs, 0.05)!.pValue < 0.05) found += 1;
  }
  expect(found / runs).toBeLessThan(0.065 + SLACK);
});
