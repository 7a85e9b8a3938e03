import { describe, expect, it } from 'vitest';
import { reportTotals } from '../../../src/index.js';
import { SeededRandom } from '../../fixtures/experiments/seeded-random.js';
import { simulate } from '../../fixtures/experiments/simulate.js';
import { type Seen, succeededIn, readTotals } from '../../fixtures/experiments/totals.js';

const RUNS = process.env['PERF_LONG'] === undefined ? 600 : 10_000;

describe('an A/A experiment with few units', () => {
  it.each([3, 5, 15])('is significant in about 5 %% of runs: %s units an arm', { timeout: 300_000 }, (unitsPerArm) => {
    const { found, covered } = simulate({ unitsPerArm, unitEffect: 0.1, effect: 0 }, RUNS, 21);
    if (process.env['PERF_LONG'] !== undefined) console.log(`A/A, ${unitsPerArm} units an arm: ${found}`);
    expect(found).toBeGreaterThan(0.02);
    expect(found).toBeLessThan(0.09);
    expect(covered).toBeGreaterThan(0.91);
  });
});

describe('a cold process', () => {
  /** 56 users, always the same ones on, come one after the other; the first requests of one variant take 50 times as long. */
  function* cold(random: SeededRandom): Generator<Seen> {
    const served = { on: 0, off: 0 };
    for (let user = 0; user < 56; user++) {
      // Ids that are on come first, as a hash may well have it: whoever is first meets the cold code.
      const on = user < 8 || (user >= 16 && user % 2 === 0);
      const speed = 5 * (1 + 0.1 * random.normal());
      for (let i = 0; i < 6; i++) {
        const warmth = 1 + 49 * Math.exp(-served[on ? 'on' : 'off']++ / 4);
        yield { user: `u${user}`, on, outcome: succeededIn(speed * random.logNormal(0.4) * (on ? warmth : 1)) };
      }
    }
  }
  const reports = Array.from({ length: 200 }, (_, seed) =>
    reportTotals(readTotals('pod', cold(new SeededRandom(seed))), 'faster', { route: '/work' }),
  );

  it('finds no difference more often than chance does', () => {
    const found = reports.filter(({ comparison }) => comparison!.pValue < 0.05).length / reports.length;
    expect(found).toBeLessThan(0.09);
    expect(found).toBeGreaterThan(0.01);
  });

  it('says in the one line that the units are few, and what the warm-up is left out of', () => {
    for (const { text, caveats, comparison } of reports) {
      expect(text).toMatch(/, too few units to rely on it; errors unchanged/);
      expect(caveats.at(-1)).toMatch(/^Warm-up: the first requests of a route, until each variant has had 20 /);
      expect(comparison!.control.count + comparison!.treatment.count).toBe(336);
      expect(comparison!.ci[0]).toBeGreaterThanOrEqual(-1);
      // Cold requests make the mean of one variant several times the other's; the difference is that of the warm ones.
      expect(comparison!.treatment.mean / comparison!.control.mean).toBeGreaterThan(1.5);
      expect(Math.abs(comparison!.relativeDelta)).toBeLessThan(0.5);
    }
  });

  it('is compared as it is where nothing else was seen', () => {
    const seen = [...cold(new SeededRandom(1))].slice(0, 90);
    const report = reportTotals(readTotals('pod', seen), 'faster');
    expect(report.comparison).not.toBeNull();
    expect(report.caveats.join()).not.toContain('Warm-up');
  });
});
