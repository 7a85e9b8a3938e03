import { describe, expect, it } from 'vitest';
import { mergeTotals, type ExperimentTotals } from '../../../../src/index.js';
import type { VariantTotals } from '../../../../src/experiments/totals/experiment-totals.js';
import { failedIn, type Seen, succeededIn, readTotals } from '../../../fixtures/experiments/totals.js';
import { SeededRandom } from '../../../fixtures/experiments/seeded-random.js';

/** Whole milliseconds, so that sums are exact in any order. */
function requests(seed: number, count: number): Seen[] {
  const random = new SeededRandom(seed);
  return Array.from({ length: count }, () => {
    const user = random.integer(0, 300);
    const ms = random.integer(1, 90);
    const outcome = random.next() < 0.1 ? failedIn(ms) : succeededIn(ms);
    return { user: `u${user}`, on: user % 2 === 0, outcome, route: random.next() < 0.3 ? '/rare' : '/work' };
  });
}

/** At an even split each request that is no warm-up weighs a half. */
const warmUpRequests = ({ buckets }: VariantTotals): number =>
  buckets.reduce((sum, row) => sum + row[3]! - 2 * row[9]!, 0);

describe('mergeTotals', () => {
  const parts = [1, 2, 3].map((seed) => requests(seed, 2_000));
  const totals = parts.map((part, i) => readTotals(`pod-${i}`, part));
  const merged = mergeTotals(...totals);

  it('equals the totals of one process that had seen everything, but that each process has a warm-up of its own', () => {
    /** A bucket's number and its sums, those of the warm-up left out. */
    const settled = (totals: ExperimentTotals): unknown =>
      JSON.parse(JSON.stringify(totals), (key, value: unknown) =>
        key === 'buckets' ? (value as number[][]).map((row) => row.slice(0, 7)) : value,
      );
    const one = readTotals('one', parts.flat());
    expect(settled(mergeTotals({ ...one, sources: ['pod-0', 'pod-1', 'pod-2'] }))).toEqual(settled(merged));
    const warmUps = ({ gates }: ExperimentTotals): number =>
      Math.min(...[gates[0]!.routes[0]!.on, gates[0]!.routes[0]!.off].map(warmUpRequests));
    // Of the variant that was slower to have its 20: each process waited for it.
    const ofEach = totals.map(({ gates }) => [gates[0]!.routes[0]!.on, gates[0]!.routes[0]!.off].map(warmUpRequests));
    expect(ofEach.map((both) => Math.min(...both))).toEqual([20, 20, 20]);
    expect(warmUps(one)).toBe(20);
    expect(warmUps(merged)).toBeGreaterThanOrEqual(60);
  });

  it('does not depend on the order, and merges what was merged', () => {
    const [a, b, c] = totals as [ExperimentTotals, ExperimentTotals, ExperimentTotals];
    expect(mergeTotals(c, a, b)).toEqual(merged);
    expect(mergeTotals(mergeTotals(c, a), b)).toEqual(merged);
  });

  it('survives JSON', () => {
    const sent = JSON.parse(JSON.stringify(totals)) as ExperimentTotals[];
    expect(mergeTotals(...sent)).toEqual(merged);
  });

  it('leaves what it was given as it was', () => {
    const before = structuredClone(totals);
    mergeTotals(...totals);
    expect(totals).toEqual(before);
  });

  it('leaves out what it does not know where two become one: it is of one process alone', () => {
    const noted = structuredClone(totals) as Record<string, any>[];
    for (const { gates } of noted) {
      for (const one of [...gates, ...gates[0].routes]) one.note = 'of one process';
    }
    expect(mergeTotals(...(noted as unknown as ExperimentTotals[]))).toEqual(merged);
  });

  it('of nothing is empty', () => {
    expect(mergeTotals()).toEqual({ version: 3, sources: [], gates: [], slices: [] });
  });

  it('gives up the expected share when pods disagree about it', () => {
    const [a, b] = [
      readTotals('a', parts[0]!, { treatmentShare: 0.1 }),
      readTotals('b', parts[1]!, { treatmentShare: 0.5 }),
    ];
    expect(mergeTotals(a, b).gates[0]!.treatmentShare).toBeNull();
  });

  it.each<[string, unknown, string]>([
    [
      'no object',
      'totals',
      '`totals[0].version` must be 3, got `undefined`. Let all pods run one version of nestjs-perf.',
    ],
    [
      'another version',
      { ...totals[0]!, version: 1 },
      '`totals[0].version` must be 3, got `1` (number). Let all pods run one version of nestjs-perf.',
    ],
    [
      'a cut bitmap',
      {
        ...totals[0]!,
        gates: totals[0]!.gates.map((gate) => ({
          ...gate,
          routes: [...gate.routes, { ...gate.routes[0]!, on: { units: 'AAAA', buckets: [] } }],
        })),
      },
      '`totals.….units` must be a bitmap of units, deflated, base64, got `"AAAA"` (string).',
    ],
  ])('refuses %s', (_name, given, message) => {
    expect(() => mergeTotals(given as ExperimentTotals)).toThrow(`PERF_ERR_UNITS: ${message}`);
  });
});
