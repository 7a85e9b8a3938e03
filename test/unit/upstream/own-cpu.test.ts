import { describe, expect, it } from 'vitest';
import { inOneTurn } from '../../../src/core/turns.js';
import { estimateOwnCpu, type BusyWindow } from '../../../src/upstream/own-cpu.js';
import { poisson, randomOf } from '../../fixtures/random.js';

/** Routes with a cost (ms) and a rate (a second); each request costs between half and one and a half of its mean. */
const ROUTES = [
  { ms: 6, rate: 4 },
  { ms: 25, rate: 0.5 },
  { ms: 1.2, rate: 20 },
];

function simulate(seconds: number, random: () => number): BusyWindow[] {
  return Array.from({ length: seconds }, () => {
    const counts = ROUTES.map(({ rate }) => poisson(rate, random));
    let busyMs = 3 + 2 * random();
    counts.forEach((count, route) => {
      for (let i = 0; i < count; i++) busyMs += ROUTES[route]!.ms * (0.5 + random());
    });
    return { busyMs, counts };
  });
}

describe('the CPU of a request, from the loop’s busy time', () => {
  it.each([120, 900])(
    'is within 20 % of the truth, and its interval holds it in nine of ten runs of %d s',
    (seconds) => {
      const runs = 100;
      const [held, near] = [ROUTES.map(() => 0), ROUTES.map(() => 0)];
      for (let seed = 1; seed <= runs; seed++) {
        const random = randomOf(seed);
        inOneTurn(estimateOwnCpu(simulate(seconds, random))).forEach((estimate, route) => {
          const { ms } = ROUTES[route]!;
          if (Math.abs(estimate!.mean / ms - 1) < 0.2) near[route]! += 1;
          if (estimate!.ci[0] <= ms && ms <= estimate!.ci[1]) held[route]! += 1;
        });
      }
      for (const route of ROUTES.keys()) {
        expect(held[route]).toBeGreaterThanOrEqual(0.9 * runs);
        expect(near[route]).toBeGreaterThanOrEqual(0.95 * runs);
      }
    },
  );

  it('is told of routes together that come and go together', () => {
    const random = randomOf(7);
    const windows = simulate(600, random).map(({ busyMs, counts: [first, ...rest] }) => ({
      busyMs: busyMs + 2 * first!,
      counts: [first!, ...rest, first!],
    }));
    const [first, , , twin] = inOneTurn(estimateOwnCpu(windows));
    expect(first).toMatchObject({ with: [3] });
    expect(twin).toMatchObject({ with: [0], mean: first!.mean });
    expect(first!.mean).toBeGreaterThan(3);
    expect(first!.mean).toBeLessThan(5);
  });

  it('is unknown of what was not seen, and with too few windows', () => {
    expect(inOneTurn(estimateOwnCpu([]))).toEqual([]);
    const windows = simulate(60, randomOf(3)).map(({ busyMs, counts }) => ({ busyMs, counts: [...counts, 0] }));
    expect(inOneTurn(estimateOwnCpu(windows)).at(-1)).toBeNull();
    expect(inOneTurn(estimateOwnCpu(windows.slice(0, 20)))).toEqual([null, null, null, null]);
  });
});
