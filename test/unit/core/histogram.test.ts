import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Histogram } from '../../../src/core/histogram.js';

const exactQuantile = (sorted: readonly number[], q: number): number =>
  sorted[Math.max(1, Math.ceil(q * sorted.length)) - 1]!;

describe('Histogram', () => {
  it('answers every quantile within 1 % of the exact one', () => {
    const durations = fc.array(fc.double({ min: 0.002, max: 3_600_000, noNaN: true }), {
      minLength: 1,
      maxLength: 300,
    });
    fc.assert(
      fc.property(durations, fc.double({ min: 0.001, max: 1, noNaN: true }), (values, q) => {
        const histogram = new Histogram();
        for (const value of values) histogram.record(value);
        const exact = exactQuantile(
          [...values].sort((a, b) => a - b),
          q,
        );
        expect(Math.abs(histogram.quantileMs(q) - exact)).toBeLessThanOrEqual(exact * 0.01);
      }),
    );
  });

  it('gives the same answers whether it recorded everything or merged two halves', () => {
    const values = fc.array(fc.double({ min: 0.01, max: 60_000, noNaN: true }), { maxLength: 200 });
    fc.assert(
      fc.property(values, values, (left, right) => {
        const [whole, a, b] = [new Histogram(), new Histogram(), new Histogram()];
        for (const value of [...left, ...right]) whole.record(value);
        for (const value of left) a.record(value);
        for (const value of right) b.record(value);
        a.merge(b);
        expect([a.count, a.maxMs, a.quantileMs(0.5), a.quantileMs(0.99)]).toEqual([
          whole.count,
          whole.maxMs,
          whole.quantileMs(0.5),
          whole.quantileMs(0.99),
        ]);
        expect(a.sumMs).toBeCloseTo(whole.sumMs, 3);
      }),
    );
  });

  it('counts what lies outside its range at the border and never answers NaN', () => {
    const histogram = new Histogram();
    for (const value of [0, -1, NaN, 1e-9, Infinity, 1e12]) expect(() => histogram.record(value)).not.toThrow();
    expect(histogram.count).toBe(6);
    expect(histogram.quantileMs(0.5)).not.toBeNaN();
    expect(new Histogram().quantileMs(0.99)).toBe(0);
    expect(new Histogram().meanMs).toBe(0);
  });

  it('counts at most a bound what lies there, but for values within 1 % of it', () => {
    const values = fc.array(fc.double({ min: 0.002, max: 60_000, noNaN: true }), { maxLength: 200 });
    const bounds = fc.array(fc.double({ min: 0.001, max: 100_000, noNaN: true }), { minLength: 1, maxLength: 15 });
    fc.assert(
      fc.property(values, bounds, (durations, unsorted) => {
        const histogram = new Histogram();
        for (const value of durations) histogram.record(value);
        const ascending = [...unsorted].sort((a, b) => a - b);
        const counts = histogram.countsAtMost(ascending);
        for (const [i, bound] of ascending.entries()) {
          expect(counts[i]).toBeGreaterThanOrEqual(durations.filter((value) => value <= bound * 0.99).length);
          expect(counts[i]).toBeLessThanOrEqual(durations.filter((value) => value <= bound * 1.01).length);
        }
      }),
    );
  });

  it('counts cumulatively, as Prometheus wants it', () => {
    const histogram = new Histogram();
    for (const value of [1, 2, 3, 40, 500]) histogram.record(value);
    expect(histogram.countsAtMost([5, 50, 510, 1000])).toEqual([3, 4, 5, 5]);
    expect(histogram.countsAtMost([0.5])).toEqual([0]);
  });

  it('never counts fewer at a bound when more was recorded', () => {
    const values = fc.array(fc.double({ min: 2_400, max: 2_700, noNaN: true }), { minLength: 1, maxLength: 50 });
    fc.assert(
      fc.property(values, (durations) => {
        const histogram = new Histogram();
        let before = 0;
        for (const value of durations) {
          histogram.record(value);
          const [now] = histogram.countsAtMost([2_500]) as [number];
          expect(now).toBeGreaterThanOrEqual(before);
          before = now;
        }
      }),
    );
  });
});
