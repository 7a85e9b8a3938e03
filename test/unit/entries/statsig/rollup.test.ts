import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rollup } from '../../../../src/entries/statsig/rollup.js';
import { requestRecord } from '../../../fixtures/records.js';

describe('Rollup', () => {
  it('holds count, sum and sum of squares, from which mean and variance follow', () => {
    const durations = fc.array(fc.double({ min: 0.001, max: 60_000, noNaN: true }), { minLength: 2, maxLength: 50 });
    fc.assert(
      fc.property(durations, (values) => {
        const rollup = new Rollup();
        for (const durationMs of values) rollup.add(requestRecord({ durationMs }), 'p');
        const [event, ...others] = rollup.take('p', 1_000);
        expect(others).toEqual([]);
        const { count, sum, sumSquares } = event!.metadata as Record<string, number>;
        const mean = values.reduce((a, b) => a + b, 0) / values.length;
        const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / (values.length - 1);
        expect(count).toBe(values.length);
        expect(event!.value).toBeCloseTo(mean, 6);
        const tolerance = 1e-9 * sumSquares!;
        expect(Math.abs((sumSquares! - sum! ** 2 / count!) / (count! - 1) - variance)).toBeLessThanOrEqual(tolerance);
      }),
    );
  });

  it('keeps route, status class, outcome and variants apart', () => {
    const rollup = new Rollup();
    rollup.add(requestRecord({ status: 200 }), 'p');
    rollup.add(requestRecord({ status: 204 }), 'p');
    rollup.add(requestRecord({ status: 503 }), 'p');
    rollup.add(requestRecord({ route: '/other' }), 'p');
    rollup.add(requestRecord({ outcome: 'aborted' }), 'p');
    rollup.add(requestRecord({ variants: { fast_json: 'on' } }), 'p');
    rollup.add(requestRecord({ variants: { fast_json: 'off' } }), 'p');
    const events = rollup.take('p', 1_000);
    expect(
      events.map(({ metadata: { route, status, outcome, fast_json, count } }) => [
        route,
        status,
        outcome,
        fast_json,
        count,
      ]),
    ).toEqual([
      ['/users/:id', '2xx', 'completed', undefined, 2],
      ['/users/:id', '5xx', 'completed', undefined, 1],
      ['/other', '2xx', 'completed', undefined, 1],
      ['/users/:id', '2xx', 'aborted', undefined, 1],
      ['/users/:id', '2xx', 'completed', 'on', 1],
      ['/users/:id', '2xx', 'completed', 'off', 1],
    ]);
    expect(events[0]!.user).toEqual({ userID: 'p' });
  });

  it('starts every interval at nothing', () => {
    const rollup = new Rollup();
    rollup.add(requestRecord(), 'p');
    rollup.take('p', 1_000);
    expect(rollup.take('p', 1_000)).toEqual([]);
  });

  it('counts the rest together when there are more groups than it holds', () => {
    const rollup = new Rollup();
    for (let i = 0; i < 1_500; i++) rollup.add(requestRecord({ route: `/r${i}` }), 'p');
    const events = rollup.take('p', 1_000);
    expect(events).toHaveLength(1_001);
    expect(events.at(-1)!.metadata).toMatchObject({ route: '_OTHER', handler: null, count: 500 });
  });
});
