import { describe, expect, it } from 'vitest';
import { reportTotals } from '../../../../src/index.js';
import type { ExperimentReport, ReportOptions } from '../../../../src/experiments/report/experiment-report.js';
import { mergeTotals } from '../../../../src/experiments/totals/merge-totals.js';
import { binomial, randomOf } from '../../../fixtures/random.js';

type ErrorsOf = (pair: number) => { on: number; off: number };

/** Pairs of slices with 100 requests each. Those that do not fail take 10 ms. */
function report(pairs: number, errorsOf: ErrorsOf, options: ReportOptions = {}): ExperimentReport {
  const slices = Array.from({ length: pairs }, (_, i) => {
    const errors = errorsOf(i);
    return ([true, false] as const).map((on) => {
      const failed = on ? errors.on : errors.off;
      const succeeded = 100 - failed;
      const routes = [['GET', '/a', succeeded, 10 * succeeded, 100, failed, 0, 0] as const];
      return { gate: 'g', pair: `p:${i}`, on, cpuMs: 100, memoryBytes: 1e8, routes };
    });
  }).flat();
  return reportTotals({ ...mergeTotals(), slices }, 'g', options);
}

const FAIL_UNEQUALLY = 'Latency is of successful requests only, and the variants do not fail equally often.';

describe('a switchback whose control never fails', () => {
  const failing: ErrorsOf = () => ({ on: 30, off: 0 });

  it('has an answer about errors, without a relative difference', () => {
    const { text, comparison } = report(20, failing, { metric: 'errors' });
    expect(text).toBe('g: errors 0.0 % → 30.0 %, p < 0.0001, 20 / 20 slices');
    expect(comparison).toMatchObject({
      control: { units: 20, count: 2_000, mean: 0 },
      treatment: { mean: 0.3 },
      relativeDelta: 0,
      ci: [-Infinity, Infinity],
      pValue: 1,
    });
  });

  it('has the errors beside latency, blocked and cpu, and warns that latency leaves failures out', () => {
    const latency = report(20, failing);
    expect(latency.text).toMatch(/^g: latency 0\.0 % .*; errors 0\.0 % → 30\.0 %, p < 0\.0001$/);
    expect(latency.caveats).toContain(FAIL_UNEQUALLY);
    expect(report(20, failing, { metric: 'blocked' }).text).toBe(
      'g: blocked 0.0 → 0.0 ms a request, no relative difference, 20 / 20 slices; errors 0.0 % → 30.0 %, p < 0.0001',
    );
    expect(report(20, failing, { metric: 'cpu' }).text).toMatch(/; errors 0\.0 % → 30\.0 %, p < 0\.0001$/);
    expect(report(20, failing, { metric: 'memory' }).text).not.toContain('errors');
  });

  it('says so where the treatment has no success to compare', () => {
    const { text, caveats } = report(20, () => ({ on: 100, off: 0 }));
    expect(text).toBe('g: latency unknown: 0 complete pairs of time slices with data');
    expect(caveats).toContain(FAIL_UNEQUALLY);
  });

  it('does not rely on few pairs', () => {
    expect(report(2, failing, { metric: 'errors' }).text).toBe(
      'g: errors 0.0 % → 30.0 %, p 0.5000, 2 / 2 slices, too few slices to rely on it',
    );
    expect(report(1, failing, { metric: 'errors' }).comparison).toBeNull();
  });
});

it('knows no other metrics', () => {
  const { text, comparison } = report(2, () => ({ on: 0, off: 0 }), { metric: 'p95' as never });
  expect(text).toContain('there is no such metric');
  expect(comparison).toBeNull();
});

it('cancels what both slices of a pair share', () => {
  const errorsOf: ErrorsOf = (pair) => ({ on: pair * 4 + 1 + (pair % 2), off: pair * 4 });
  expect(report(20, errorsOf).text).toMatch(/; errors 38\.0 % → 39\.5 %, p < 0\.0001$/);
});

it('takes one failure for no difference, whichever variant it is of', () => {
  for (const failed of ['on', 'off'] as const) {
    const errorsOf: ErrorsOf = (pair) => ({ on: 0, off: 0, [failed]: pair === 0 ? 1 : 0 });
    expect(report(20, errorsOf).text).toMatch(/; errors unchanged$/);
    expect(report(20, errorsOf).caveats).not.toContain(FAIL_UNEQUALLY);
    expect(report(20, errorsOf, { metric: 'errors' }).text).toContain('p 0.3299');
  }
});

it('takes many failures of one slice for no difference, also against one failure', () => {
  const text = report(20, (pair) => ({ on: pair === 5 ? 1 : 0, off: pair === 3 ? 50 : 0 }), { metric: 'errors' }).text;
  expect(text).toContain('p 0.3400');
});

it.each([0.0005, 0.003, 0.05])('finds errors in one of 20 A/A runs at most, a share of %s failing', (share) => {
  const random = randomOf(3);
  const draw = (): number => binomial(100, share, random);
  let found = 0;
  for (let run = 0; run < 400; run++) {
    if (!report(20, () => ({ on: draw(), off: draw() })).text.endsWith('errors unchanged')) found += 1;
  }
  expect(found / 400).toBeLessThan(0.075);
});
