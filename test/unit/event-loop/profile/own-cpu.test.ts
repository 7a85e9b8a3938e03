import { describe, expect, it } from 'vitest';
import { estimateOwnCpu } from '../../../../src/event-loop/profile/own-cpu.js';
import { normal, randomOf } from '../../../fixtures/random.js';
import { route, SimulatedLoop, type Traffic } from '../../../fixtures/simulated-loop.js';

/** The full proof has 200 simulated loops of each kind. */
const LONG = process.env['PERF_LONG'] !== undefined;
const RUNS = LONG ? 200 : 40;
/** Of 40, chance takes a few more. */
const [MOST, BIAS] = LONG ? [0.9, 0.03] : [0.85, 0.06];

interface Kind {
  readonly ms: number;
  readonly perSecond: number;
  /** Standard deviation of the logarithm of a request's work; 0 where absent. */
  readonly spread?: number;
  readonly pieces?: number;
  readonly native?: boolean;
}

const trafficOf = (kinds: readonly Kind[], random: () => number): Traffic[] =>
  kinds.map(({ ms, spread = 0, ...rest }, i) => ({
    route: route(`/${i}`),
    workMs: () => ms * Math.exp(spread * normal(random) - spread ** 2 / 2),
    ...rest,
  }));

describe.each<[string, number, readonly Kind[]]>([
  [
    'short requests, 2,000 samples',
    100,
    [
      { ms: 1, perSecond: 40 },
      { ms: 4, perSecond: 30 },
      { ms: 2, perSecond: 25 },
      { ms: 10, perSecond: 8 },
      { ms: 7, perSecond: 5 },
    ],
  ],
  [
    'blocks of the loop, which are sampled more often',
    100,
    [
      { ms: 300, perSecond: 0.3 },
      { ms: 120, perSecond: 1 },
      { ms: 60, perSecond: 2 },
      { ms: 3, perSecond: 30 },
      { ms: 25, perSecond: 4 },
    ],
  ],
  [
    'requests whose work differs',
    100,
    [
      { ms: 200, perSecond: 0.5, spread: 0.8 },
      { ms: 60, perSecond: 2, spread: 0.8 },
      { ms: 10, perSecond: 8, spread: 0.8 },
    ],
  ],
  [
    'a handful of long requests',
    30,
    [
      { ms: 400, perSecond: 0.15 },
      { ms: 250, perSecond: 0.2 },
      { ms: 3, perSecond: 40 },
    ],
  ],
  [
    'requests in pieces, interleaved',
    100,
    [
      { ms: 150, perSecond: 1, pieces: 30, spread: 0.5 },
      { ms: 80, perSecond: 2, pieces: 10, spread: 0.5 },
      { ms: 15, perSecond: 8, pieces: 5 },
    ],
  ],
  [
    'native calls, which serve a sample at their end',
    100,
    [
      { ms: 150, perSecond: 1, native: true },
      { ms: 15, perSecond: 8, native: true },
      { ms: 4, perSecond: 30 },
    ],
  ],
])('own CPU of %s', (_name, seconds, kinds) => {
  const [known, held, near, ratios] = Array.from({ length: 4 }, () => kinds.map(() => 0)) as [
    number[],
    number[],
    number[],
    number[],
  ];
  for (let seed = 1; seed <= RUNS; seed++) {
    const random = randomOf(seed);
    const loop = new SimulatedLoop(random);
    const traffic = trafficOf(kinds, random);
    loop.run(seconds, traffic);
    for (const [i, { ms }] of kinds.entries()) {
      const estimate = loop.profile.ownCpuMs([traffic[i]!.route]);
      if (estimate === null) continue;
      const { mean, ci } = estimate;
      known[i]! += 1;
      ratios[i]! += mean / ms;
      if (ci[0] <= ms && ms <= ci[1]) held[i]! += 1;
      if (Math.abs(mean - ms) < Math.max(0.2 * ms, (ci[1] - ci[0]) / 2)) near[i]! += 1;
    }
  }

  it.each(kinds.map(({ ms }, i) => [ms, i] as const))('of %s ms is inside its interval in 9 of 10 runs', (_ms, i) => {
    expect(known[i]!).toBeGreaterThan(0.9 * RUNS);
    expect(held[i]! / known[i]!).toBeGreaterThan(MOST);
    expect(near[i]! / known[i]!).toBeGreaterThan(MOST);
    // No bias: the rate at which a block is sampled has no say.
    expect(Math.abs(ratios[i]! / known[i]! - 1)).toBeLessThan(BIAS);
  });
});

describe('the estimate', () => {
  it('needs 20 samples, and a request of the same time', () => {
    const sums = { ms: 1_000, squaredMs: 50_000, requests: 500 };
    expect(estimateOwnCpu({ ...sums, samples: 19 })).toBeNull();
    expect(estimateOwnCpu({ ...sums, samples: 20, requests: 0 })).toBeNull();
    expect(estimateOwnCpu({ ...sums, samples: 20 })).toMatchObject({ mean: 2, samples: 20 });
  });

  it('is sure of nothing when all samples are of one request', () => {
    const { mean, ci } = estimateOwnCpu({ samples: 40, ms: 400, squaredMs: 160_000, requests: 1 })!;
    expect(mean).toBe(400);
    expect(ci[0]).toBeGreaterThan(0);
    expect(ci[0]).toBeLessThan(40);
    expect(ci[1]).toBeGreaterThan(4_000);
  });
});
