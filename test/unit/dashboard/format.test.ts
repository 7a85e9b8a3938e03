import { describe, expect, it } from 'vitest';
import { formatBytes, formatDuration, formatMs } from '../../../src/dashboard/format.js';

describe('figures', () => {
  it('have at most three digits and a unit, also where they are rounded up', () => {
    expect([0, 0.034, 9.996, 99.96, 999.4, 999.7, 59_990, 3_599_900, null].map(formatDuration)).toEqual([
      '0 ms',
      '0.03 ms',
      '10 ms',
      '100 ms',
      '999 ms',
      '1 s',
      '60 s',
      '60 min',
      '–',
    ]);
    expect([999, 999.7 * 1_024, 2 ** 30].map(formatBytes)).toEqual(['999 B', '0.98 MB', '1 GB']);
    expect([0, 12.34, 999.4, 999.7, 12_345.6, null].map(formatMs)).toEqual([
      '0',
      '12.3',
      '999',
      '1,000',
      '12,346',
      '–',
    ]);
  });
});
