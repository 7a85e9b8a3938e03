import { describe, expect, it } from 'vitest';
import { reportTotals } from '../../../../src/index.js';
import type { ExperimentTotals, VariantTotals } from '../../../../src/experiments/totals/experiment-totals.js';
import { UnitBitmap } from '../../../../src/experiments/totals/unit-bitmap.js';
import { succeededIn, readTotals } from '../../../fixtures/experiments/totals.js';
import { randomOf } from '../../../fixtures/random.js';

/** Totals of a gate that so many units were seen with; the requests of a few of them. */
function totals(units: { on: number; off: number; both?: number }, treatmentShare = 0.5): ExperimentTotals {
  const random = randomOf(5);
  const [on, off] = [UnitBitmap.empty(), UnitBitmap.empty()];
  const draw = (count: number, ...bitmaps: UnitBitmap[]): void => {
    for (let i = 0; i < count; i++) {
      const hash = Math.floor(random() * 2 ** 32);
      for (const bitmap of bitmaps) bitmap.add(hash);
    }
  };
  draw(units.on, on);
  draw(units.off, off);
  draw(units.both ?? 0, on, off);
  const seen = Array.from({ length: 600 }, (_, i) => {
    return { user: `${i % 120}`, on: i % 2 === 0, outcome: succeededIn(10 + (i % 7)) };
  });
  const { gates, ...rest } = readTotals('pod', seen, { treatmentShare });
  const [route] = gates[0]!.routes;
  const counted = (variant: VariantTotals, bitmap: UnitBitmap) => ({ ...variant, units: bitmap.toString() });
  const routes = [{ ...route!, on: counted(route!.on, on), off: counted(route!.off, off) }];
  return { ...rest, gates: [{ ...gates[0]!, routes }] };
}

describe('a gate with more units than the bitmap can tell', () => {
  it.each([
    ['one variant', { on: 400_000, off: 3_600_000 }, 0.1],
    ['both', { on: 2_000_000, off: 2_000_000 }, 0.5],
  ])('has no sample ratio, and says why: %s', (_what, units, share) => {
    const { text, caveats, comparison } = reportTotals(totals(units, share), 'faster');
    expect(comparison!.sampleRatioMismatch).toEqual({ pValue: 1, suspect: false });
    expect(text).toContain('sample ratio not checked');
    expect(caveats).toContain(
      'The sample ratio was not checked: the share of units that should be on is unknown, or their number.',
    );
    expect(caveats.join(' ')).not.toMatch(/had both variants|Sample ratio mismatch|pass `treatmentShare`/);
  });

  it('is not said to mix variants when only their union is too large to count', () => {
    const { text, caveats } = reportTotals(totals({ on: 700_000, off: 700_000 }), 'faster');
    expect(text).toContain('sample ratio ok');
    expect(caveats.join(' ')).not.toMatch(/had both variants|was not checked/);
  });

  it('is still held against its share, and searched for units of both variants, as long as they can be counted', () => {
    const mixed = reportTotals(totals({ on: 250_000, off: 250_000, both: 50_000 }), 'faster').caveats.join(' ');
    expect(mixed).toMatch(/About (4[5-9]|5[0-5])\d{3} units had both variants/);
    const skewed = reportTotals(totals({ on: 300_000, off: 350_000 }), 'faster');
    expect(skewed.comparison!.sampleRatioMismatch.suspect).toBe(true);
  });
});
