import { describe, expect, it } from 'vitest';
import { mergeTotals, reportTotals } from '../../../../src/index.js';
import { engineWith, end, owner, request, routeOf } from '../../../fixtures/experiments/engine.js';
import { hashText } from '../../../../src/experiments/unit-hash.js';
import { SeededRandom } from '../../../fixtures/experiments/seeded-random.js';

const RUNS = process.env['PERF_LONG'] === undefined ? 10 : 20;

interface Hour {
  share: number;
  requests: number;
  meanMs: number;
}

/** A gate that does nothing, in hours of different speed. `users`: how many there are; null: every request is a unit. */
function readTotals(
  hours: readonly Hour[],
  { seed, users, knowsShare }: { seed: number; users: number; knowsShare: boolean },
) {
  const random = new SeededRandom(seed);
  let share = 0;
  const { engine } = engineWith({
    gates: {
      check: (_gate, { userId }) => ({ on: hashText(userId, seed) / 2 ** 32 < share }),
      ...(knowsShare ? { share: () => share } : {}),
    },
  });
  const [mine, route] = [owner(), routeOf('/work')];
  for (const hour of hours) {
    share = hour.share;
    for (let i = 0; i < hour.requests; i++) {
      const state = request(mine);
      state.frameworkRequest = { user: { id: random.integer(1, users) } };
      engine.isOn(state, 'gate');
      end(engine, state, route, hour.meanMs * random.logNormal(0.5));
    }
  }
  return engine.totals();
}

const RAISED_IN_A_SLOW_HOUR: readonly Hour[] = [
  { share: 0.1, requests: 4_000, meanMs: 20 },
  { share: 0.5, requests: 4_000, meanMs: 60 },
];

describe('a split that is changed while it runs', () => {
  it.each([
    ['the client knows the share', true, 1e9],
    ['the share is unknown, and every request is a unit', false, 1e9],
    ['the share is unknown, and the same users come back', false, 1_500],
  ])('is a caveat, and finds no effect where there is none: %s', (_name, knowsShare, users) => {
    let found = 0;
    for (let seed = 1; seed <= RUNS; seed++) {
      const report = reportTotals(readTotals(RAISED_IN_A_SLOW_HOUR, { seed, users, knowsShare }), 'gate');
      expect(report.caveats.join()).toMatch(
        /The split changed while the gate was compared: \d+\.\d % of the units were on, then \d+\.\d %\.|About \d+ units had both/,
      );
      expect(report.text).toContain('sample ratio not checked');
      // By plain means `on` is half as slow again.
      const { control, treatment, relativeDelta, pValue } = report.comparison!;
      expect(treatment.mean / control.mean).toBeGreaterThan(1.3);
      expect(Math.abs(relativeDelta)).toBeLessThan(0.1);
      if (pValue < 0.05) found += 1;
    }
    expect(found).toBeLessThanOrEqual(RUNS / 5);
  });

  it.each([300, 700, 1_500, 5_000])('is found when %d units have come and as many again', (requests) => {
    for (let seed = 1; seed <= RUNS; seed++) {
      const hours = [0.1, 0.5].map((share) => ({ share, requests, meanMs: 20 }));
      const [from, to] = readTotals(hours, { seed, users: 1e9, knowsShare: false }).gates[0]!.splitMoved!;
      expect(from).toBeLessThan(0.3);
      expect(to).toBeGreaterThan(0.3);
    }
  });

  it('is none where only the load changes', () => {
    for (let seed = 1; seed <= RUNS; seed++) {
      const steady = RAISED_IN_A_SLOW_HOUR.map((hour) => ({ ...hour, share: 0.3 }));
      const totals = readTotals(steady, { seed, users: 1e9, knowsShare: false });
      expect(totals.gates[0]!.splitMoved).toBeNull();
    }
  });

  it('is one between pods whose shares differ', () => {
    const [slow, fast] = [0.1, 0.5].map((share) =>
      readTotals([{ share, requests: 500, meanMs: 20 }], { seed: 1, users: 1e9, knowsShare: true }),
    );
    expect(mergeTotals(slow!, fast!).gates[0]).toMatchObject({ treatmentShare: null, splitMoved: [0.1, 0.5] });
  });
});
