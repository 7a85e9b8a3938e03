import { describe, expect, it } from 'vitest';
import { Repeats } from '../../../src/sinks/repeats.js';

const item = (kind: string, durationMs = 1) => ({ kind, durationMs });
const repeats = (maxKinds?: number) => new Repeats<ReturnType<typeof item>>(({ kind }) => kind, maxKinds);

describe('what comes again', () => {
  it('is told once a kind, and counted until it is taken', () => {
    const seen = repeats();
    expect([item('a'), item('a', 30), item('b'), item('a', 20)].map((each) => seen.isNew(each))).toEqual([
      true,
      false,
      true,
      false,
    ]);
    expect(seen.take()).toEqual([{ first: item('a'), count: 2, totalMs: 50, maxMs: 30 }]);
    expect(seen.take()).toEqual([]);
    expect(seen.isNew(item('a'))).toBe(true);
  });

  it('is counted together beyond so many kinds, which bounds lines and memory', () => {
    const seen = repeats(2);
    const told = Array.from({ length: 1_000 }, (_, i) => seen.isNew(item(`kind ${i}`, 2))).filter(Boolean);
    expect(told).toHaveLength(2);
    expect(seen.take()).toEqual([{ first: null, count: 998, totalMs: 1996, maxMs: 2 }]);
  });
});
