import { describe, expect, it } from 'vitest';
import { backoffMs } from '../../../src/core/backoff.js';

describe('backoff', () => {
  const rule = { baseMs: 100, maxMs: 1_000 };

  it('doubles its ceiling with each failure, up to the maximum', () => {
    expect([1, 2, 3, 4, 5, 50].map((failures) => backoffMs(failures, rule, () => 1))).toEqual([
      100, 200, 400, 800, 1_000, 1_000,
    ]);
  });

  it('has full jitter: anything from 0 to the ceiling', () => {
    expect([0, 0.25, 0.5].map((random) => backoffMs(3, rule, () => random))).toEqual([0, 100, 200]);
  });
});
