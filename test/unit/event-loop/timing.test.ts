import { expect, it } from 'vitest';
import { planTiming } from '../../../src/event-loop/event-loop.options.js';

it.each([
  [50, { beatMs: 0.5, tickMs: 10, suspectMs: 30, idleTickMs: 500 }],
  [25, { tickMs: 5, suspectMs: 15, idleTickMs: 500 }],
  [20, { beatMs: 0.2, tickMs: 5, suspectMs: 15 }],
  [1_000, { beatMs: 0.5, tickMs: 50, suspectMs: 150, idleTickMs: 500 }],
])('the timing of a threshold of %i ms', (thresholdMs, expected) => {
  expect(planTiming(thresholdMs)).toMatchObject(expected);
});
