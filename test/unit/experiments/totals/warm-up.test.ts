import { describe, expect, it } from 'vitest';
import { reportTotals } from '../../../../src/index.js';
import { type Seen, succeededIn, readTotals } from '../../../fixtures/experiments/totals.js';
import { normal, randomOf } from '../../../fixtures/random.js';

/** Requests that are the warm-up, by variant. */
function warmUp(seen: Iterable<Seen>): { on: number; off: number } {
  const { on, off } = readTotals('pod', seen).gates[0]!.routes[0]!;
  // At an even split each request that is no warm-up weighs a half.
  const of = (buckets: readonly (readonly number[])[]): number =>
    buckets.reduce((sum, row) => sum + row[3]! - 2 * row[9]!, 0);
  return { on: of(on.buckets), off: of(off.buckets) };
}

const request = (on: boolean, i: number): Seen => ({ user: `${on} ${i % 400}`, on, outcome: succeededIn(5) });

describe('the warm-up of a gate on a route', () => {
  it('is one for both variants: it waits for the rarer one, and counts what the other does meanwhile', () => {
    const seen = Array.from({ length: 2_000 }, (_, i) => request(i % 10 === 9, i));
    expect(warmUp(seen)).toEqual({ on: 20, off: 180 });
    const even = Array.from({ length: 2_000 }, (_, i) => request(i % 2 === 0, i));
    expect(warmUp(even)).toEqual({ on: 20, off: 19 + 1 });
  });

  it('ends for good after 1,000 requests, for a variant that hardly anybody has', () => {
    const rare = Array.from({ length: 9_000 }, (_, i) => request(i % 200 === 199, i));
    expect(warmUp(rare)).toEqual({ on: 5, off: 995 });
    const none = Array.from({ length: 1_500 }, (_, i) => request(false, i));
    expect(warmUp([...none, ...rare])).toEqual({ on: 0, off: 1_000 });
  });

  it('leaves out requests that clients gave up on', () => {
    const aborted: Seen = { user: 'a', on: true, outcome: { ...succeededIn(5), succeeded: false, aborted: true } };
    const seen = Array.from({ length: 2_000 }, (_, i) => (i < 500 ? aborted : request(i % 2 === 0, i)));
    expect(warmUp(seen)).toEqual({ on: 20, off: 20 });
  });

  it.each([0.05, 0.1])('makes no difference of a cold process where a share of %s is on', (share) => {
    let [found, differences] = [0, 0];
    const experiments = 30;
    for (let seed = 0; seed < experiments; seed++) {
      const random = randomOf(seed);
      const users = Array.from({ length: 1_500 }, () => ({
        on: random() < share,
        ms: 20 * Math.exp(0.1 * normal(random)),
      }));
      const seen = Array.from({ length: 5_000 }, (_, i): Seen => {
        const user = Math.floor(random() * users.length);
        // Ten times as slow at first, whatever the variant.
        const ms = users[user]!.ms * Math.exp(0.3 * normal(random)) * (1 + 9 * Math.exp(-i / 150));
        return { user: `${user}`, on: users[user]!.on, outcome: succeededIn(ms) };
      });
      const { comparison } = reportTotals(readTotals('pod', seen, { treatmentShare: share }), 'faster');
      differences += comparison!.relativeDelta;
      if (comparison!.pValue < 0.05) found += 1;
    }
    expect(Math.abs(differences / experiments)).toBeLessThan(0.03);
    expect(found).toBeLessThanOrEqual(5);
  });
});
