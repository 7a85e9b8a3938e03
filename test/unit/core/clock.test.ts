import { afterEach, expect, it, vi } from 'vitest';
import { monotonicMs } from '../../../src/core/clock.js';

afterEach(() => void vi.useRealTimers());

it('goes on under fake timers: a frozen clock would look like a blocked event loop', () => {
  const before = monotonicMs();
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout'] });
  vi.advanceTimersByTime(3_600_000);
  const after = monotonicMs();
  expect(after).toBeGreaterThanOrEqual(before);
  expect(after).toBeLessThan(before + 3_000_000);
});
