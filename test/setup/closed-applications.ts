import { afterAll, expect } from 'vitest';
import { runningDeferrers } from '../../src/defer/deferrer.js';

// Suites share a process, and `defer()` outside a request takes any application that runs there.
afterAll(() => {
  const left = [...runningDeferrers].filter(({ booted }) => booted).length;
  runningDeferrers.clear();
  expect(left, 'applications that this suite has left open').toBe(0);
});
