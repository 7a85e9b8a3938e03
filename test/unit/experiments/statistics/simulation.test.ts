import { describe, expect, it, vi } from 'vitest';
import { compareVariants, sampleRatio } from '../../../../src/experiments/statistics/compare-variants.js';
import { SeededRandom } from '../../../fixtures/experiments/seeded-random.js';
import { binomial } from '../../../fixtures/random.js';
import { ARMS, drawUnits, simulate, simulatePeeking } from '../../../fixtures/experiments/simulate.js';

/** The full proof has 20,000 runs a cell (standard error 0.15 points); the bounded one 400 (1.1 points). */
const LONG = process.env['PERF_LONG'] !== undefined;
const RUNS = LONG ? 20_000 : 400;
const SLACK = LONG ? 0 : 0.02;
vi.setConfig({ testTimeout: 600_000 });

/** The bounded proof takes the hardest: units that differ most. */
const UNIT_EFFECTS = LONG ? [0, 0.05, 0.1] : [0.1];

describe('an A/A experiment', () => {
  const cells = [10, 40].flatMap((unitsPerArm) => [
    ...UNIT_EFFECTS.map((unitEffect) => ({ unitsPerArm, unitEffect, before: false, seed: 1 })),
    { unitsPerArm, unitEffect: 0.1, before: true, seed: 3 },
  ]);
  const title = '$unitsPerArm units an arm, unit effect $unitEffect, pre-period taken off: $before';
  it.each(cells)(`is significant in 5 % of runs: ${title}`, ({ seed, ...world }) => {
    const { found } = simulate({ ...world, effect: 0 }, RUNS, seed);
    if (LONG) console.log(`A/A ${JSON.stringify(world)}: ${found}`);
    expect(found).toBeGreaterThan(0.04 - SLACK);
    expect(found).toBeLessThan((world.unitsPerArm === 10 ? 0.07 : 0.06) + SLACK);
  });
});

it.each(UNIT_EFFECTS)(
  'a true effect of -4.9 % is inside the interval in 95 % of runs, unit effect %s',
  (unitEffect) => {
    const { covered } = simulate({ unitsPerArm: 40, unitEffect, effect: -0.049 }, RUNS, 2);
    if (LONG) console.log(`coverage at -4.9 %, unit effect ${unitEffect}: ${covered}`);
    expect(covered).toBeGreaterThan(0.94 - SLACK);
    expect(covered).toBeLessThan(0.96 + SLACK);
  },
);

it.each(LONG ? [5, 10] : [10])('30 anytime-valid looks stay within 5 %, %s new units an arm a look', (unitsPerPeek) => {
  const runs = LONG ? 20_000 : 60;
  const world = { unitsPerPeek, peeks: 30, unitEffect: 0.1 };
  const anytime = simulatePeeking({ ...world, sequential: true }, runs, 4);
  const fixed = simulatePeeking({ ...world, sequential: false }, Math.min(runs, LONG ? 300 : 30), 4);
  if (LONG) console.log(`30 looks, ${unitsPerPeek} units each: ${anytime.everFound}, fixed ${fixed.everFound}`);
  expect(anytime.everFound).toBeLessThanOrEqual(0.05);
  expect(anytime.intervalAgrees).toBe(true);
  // The reason for the mode: the same looks with the fixed test.
  expect(fixed.everFound).toBeGreaterThan(0.15);
});

/** Correlation of the units' averages in the experiment with those before it, from many units. */
function correlation(unitEffect: number): number {
  const rows = drawUnits(new SeededRandom(8), { unitsPerArm: 5_000, unitEffect, effect: 0, before: true });
  const readMean = (pick: (row: (typeof rows)[number]) => number): number =>
    rows.reduce((total, row) => total + pick(row), 0) / rows.length;
  // Linearised by hand: residual of the ratio, as the unit contributes to it.
  const y = readMean((row) => row.sum) / readMean((row) => row.count);
  const x = readMean((row) => row.beforeSum!) / readMean((row) => row.beforeCount!);
  const yOf = (row: (typeof rows)[number]): number => row.sum - y * row.count;
  const xOf = (row: (typeof rows)[number]): number => row.beforeSum! - x * row.beforeCount!;
  const xy = readMean((row) => yOf(row) * xOf(row));
  return xy / Math.sqrt(readMean((row) => yOf(row) ** 2) * readMean((row) => xOf(row) ** 2));
}

it.each([0.1, 0.3])('CUPED narrows the interval to √(1 - ρ²), unit effect %s', (unitEffect) => {
  const rho = correlation(unitEffect);
  const world = { unitsPerArm: 40, unitEffect, effect: -0.049 };
  const runs = LONG ? 20_000 : 150;
  const narrowed = simulate({ ...world, before: true }, runs, 6).width / simulate(world, runs, 6).width;
  if (LONG) console.log(`CUPED at ρ ${rho.toFixed(3)}: ${narrowed.toFixed(3)} of the width`);
  expect(narrowed / Math.sqrt(1 - rho * rho)).toBeGreaterThan(0.95);
  expect(narrowed / Math.sqrt(1 - rho * rho)).toBeLessThan(1.05);
});

describe('the sample ratio', () => {
  const split = (control: number, treatment: number) => [
    ...Array.from({ length: control }, (_, i) => ({ unit: `c${i}`, variant: 'control', count: 1, sum: i % 7 })),
    ...Array.from({ length: treatment }, (_, i) => ({ unit: `t${i}`, variant: 'treatment', count: 1, sum: i % 7 })),
  ];

  it('is suspect at 52/48 on 20,000 units, and not at 50.3/49.7', () => {
    expect(compareVariants(split(10_400, 9_600), ARMS).sampleRatioMismatch.suspect).toBe(true);
    expect(compareVariants(split(10_060, 9_940), ARMS).sampleRatioMismatch.suspect).toBe(false);
  });

  it('is held against the share that was asked for, or against none', () => {
    const units = split(18_000, 2_000);
    expect(compareVariants(units, { ...ARMS, treatmentShare: 0.1 }).sampleRatioMismatch.suspect).toBe(false);
    expect(compareVariants(units, ARMS).sampleRatioMismatch.suspect).toBe(true);
    expect(compareVariants(units, { ...ARMS, treatmentShare: null }).sampleRatioMismatch).toEqual({
      pValue: 1,
      suspect: false,
    });
  });

  it('raises a false alarm in one of a thousand fair experiments', () => {
    const random = new SeededRandom(12);
    const runs = LONG ? 20_000 : 2_000;
    let alarms = 0;
    for (let run = 0; run < runs; run++) {
      const on = { units: binomial(500, 0.5, random.next), variance: 0 };
      if (sampleRatio({ units: 500 - on.units, variance: 0 }, on, 0.5).suspect) alarms += 1;
    }
    expect(alarms / runs).toBeLessThan(0.003);
  });
});
