import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SpaceSaving } from '../../../src/users/space-saving.js';

const truthOf = (stream: readonly (readonly [string, number])[]): Map<string, number> => {
  const truth = new Map<string, number>();
  for (const [key, weight] of stream) truth.set(key, (truth.get(key) ?? 0) + weight);
  return truth;
};

describe('the heaviest keys of a stream', () => {
  it('have their true weight between the two bounds, whatever the stream', () => {
    const stream = fc.array(
      fc.tuple(
        fc.integer({ min: 0, max: 30 }).map((n) => `k${n}`),
        fc.integer({ min: 0, max: 100 }),
      ),
      { maxLength: 300 },
    );
    fc.assert(
      fc.property(stream, fc.integer({ min: 1, max: 12 }), (given, capacity) => {
        const sketch = new SpaceSaving(capacity);
        for (const [key, weight] of given) sketch.add(key, weight);
        for (const [key, weight] of truthOf(given)) {
          const { atLeast, atMost } = sketch.of(key);
          expect(atLeast).toBeLessThanOrEqual(weight);
          expect(atMost).toBeGreaterThanOrEqual(weight);
        }
        expect([...sketch.keys].length).toBeLessThanOrEqual(capacity);
      }),
      { seed: 1, numRuns: 300 },
    );
  });

  it('are exact while there is a counter for each', () => {
    const sketch = new SpaceSaving(2);
    for (const [key, weight, upstreamMs] of [
      ['a', 1, 0.5],
      ['b', 5],
      ['a', 2.5, 2],
    ] as const)
      sketch.add(key, weight, upstreamMs);
    expect(sketch.of('a')).toEqual({ atLeast: 3.5, atMost: 3.5, upstreamMs: 2.5 });
    expect(sketch.of('c')).toEqual({ atLeast: 0, atMost: 3.5, upstreamMs: 0 });
    // It takes the counter of `a`, but not what that had waited for.
    sketch.add('c', 1, 1);
    expect(sketch.of('c')).toEqual({ atLeast: 1, atMost: 4.5, upstreamMs: 1 });
  });

  it('keep one that is heavier than its share among many that come once', () => {
    const sketch = new SpaceSaving(64);
    for (let i = 0; i < 10_000; i++) {
      sketch.add(`once-${i}`, 1);
      if (i % 20 === 0) sketch.add('heavy', 1);
    }
    expect([...sketch.keys]).toContain('heavy');
    expect(sketch.of('heavy').atMost).toBeGreaterThanOrEqual(500);
  });
});
