import { expect } from 'vitest';
import type { DeferStats } from '../../../src/core/snapshot.js';

/** The books balance: nothing accepted is ever lost from sight. */
export function expectBalanced(stats: DeferStats): void {
  const { accepted, completed, failed, dropped, pending, running } = stats;
  expect(completed + failed + dropped + pending + running).toBe(accepted);
  expect(stats.buffered).toBeLessThanOrEqual(pending);
  expect(stats.stored).toBeLessThanOrEqual(completed);
}
