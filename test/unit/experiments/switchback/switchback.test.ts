import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Route } from '../../../../src/request/routes.js';
import { reportTotals } from '../../../../src/index.js';
import { Switchback } from '../../../../src/experiments/switchback/switchback.js';
import type { ExperimentTotals, SliceTotals } from '../../../../src/experiments/totals/experiment-totals.js';
import { mergeTotals } from '../../../../src/experiments/totals/merge-totals.js';
import { SeededRandom } from '../../../fixtures/experiments/seeded-random.js';
import { succeededIn } from '../../../fixtures/experiments/totals.js';

const PLAN = { gate: 'faster', sliceMs: 1_000, washoutMs: 100 };
const route = new Route('GET', '/work', null, () => {});
const withSlices = (slices: SliceTotals[]): ExperimentTotals => ({ ...mergeTotals(), slices });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('a switchback', () => {
  /** Serves a request every 10 ms; `cpuMs` of CPU each while off, less by `effect` while on. */
  function run(pairs: number, { cpuMs = 5, effect = 0, seed = 1 }: { cpuMs?: number; effect?: number; seed?: number }) {
    const random = new SeededRandom(seed);
    let cpuSeconds = 0;
    const use = () => ({ cpuMs: cpuSeconds * 1_000, memoryBytes: 100e6 });
    const switchback = new Switchback(PLAN, 'pod', random.next, use);
    switchback.start();
    const variants: boolean[] = [];
    for (let ms = 0; ms < pairs * 2_000; ms += 10) {
      if (ms % 1_000 === 500) variants.push(switchback.on);
      const trend = 1 + ms / (pairs * 2_000);
      const factor = (switchback.on ? 1 + effect : 1) * trend * random.logNormal(0.2);
      cpuSeconds += (cpuMs * factor) / 1_000;
      switchback.current?.add(route, succeededIn(20 * factor));
      vi.advanceTimersByTime(10);
    }
    const slices = switchback.totals();
    switchback.stop();
    return { variants, slices };
  }

  it('gives each pair one slice of each variant, in random order', () => {
    const { variants } = run(60, {});
    let onFirst = 0;
    for (let i = 0; i < variants.length; i += 2) {
      expect(variants[i]).toBe(!variants[i + 1]);
      if (variants[i]) onFirst += 1;
    }
    expect(onFirst).toBeGreaterThan(15);
    expect(onFirst).toBeLessThan(45);
  });

  it('counts nothing during the wash-out', () => {
    const { slices } = run(2, {});
    expect(slices).toHaveLength(4);
    // 90 requests in the 900 ms behind the wash-out.
    for (const slice of slices) expect(slice.routes).toEqual([['GET', '/work', 90, expect.any(Number), 90, 0, 0, 0]]);
  });

  it('stops with its timers', () => {
    run(1, {});
    expect(vi.getTimerCount()).toBe(0);
  });

  it('keeps the last 1,000 slices, in whole pairs', () => {
    const { slices } = run(505, {});
    expect(slices.length).toBeLessThanOrEqual(1_000);
    expect(slices.length).toBeGreaterThanOrEqual(998);
    expect(new Set(slices.map(({ pair }) => pair)).size).toBe(slices.length / 2);
  });

  it('finds the effect on CPU and latency through a trend twice its size, pair by pair', () => {
    const { slices } = run(20, { effect: -0.3 });
    for (const metric of ['cpu', 'latency'] as const) {
      const { comparison, text } = reportTotals(withSlices(slices), 'faster', { metric });
      expect(comparison!.ci[0]).toBeLessThan(-0.3);
      expect(comparison!.ci[1]).toBeGreaterThan(-0.3);
      expect(comparison!.ci[1]).toBeLessThan(-0.25);
      expect(text).toMatch(
        new RegExp(
          `^faster: ${metric} -\\d\\d\\.\\d % \\(95 % CI .*\\), p < 0\\.0001, 20 / 20 slices, MDE .* %; errors unchanged$`,
        ),
      );
    }
  });

  it('finds nothing in 95 % of A/A runs', () => {
    let found = 0;
    for (let seed = 1; seed <= 100; seed++) {
      const { slices } = run(8, { seed });
      if (reportTotals(withSlices(slices), 'faster', { metric: 'cpu' }).comparison!.pValue < 0.05) found += 1;
    }
    expect(found).toBeLessThanOrEqual(11);
  });

  it('says what a switchback cannot tell', () => {
    const { slices } = run(3, {});
    const report = reportTotals(withSlices(slices), 'faster', { metric: 'memory' });
    expect(report.comparison).toMatchObject({ relativeDelta: 0, control: { mean: 100e6 }, pValue: 1 });
    expect(report.caveats).toEqual([
      'A switchback compares time slices of one process at a time: what a variant leaves behind for longer than the wash-out (caches, heap) counts for the other.',
      'Few pairs: 3; 10 or more give an interval to trust.',
    ]);
    expect(reportTotals(withSlices(slices), 'faster', { metric: 'cpu', route: '/work' }).text).toBe(
      'faster on /work: cpu unknown: cpu is of the whole process; ask without `route`',
    );
    expect(reportTotals(withSlices(slices.slice(0, 1)), 'faster').text).toBe(
      'faster: latency unknown: 0 complete pairs of time slices with data',
    );
  });
});
