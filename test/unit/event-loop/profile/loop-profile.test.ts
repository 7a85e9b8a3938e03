import { describe, expect, it } from 'vitest';
import { RequestState } from '../../../../src/request/request-state.js';
import { HALF_MS } from '../../../../src/event-loop/profile/loop-profile.js';
import type { Sample } from '../../../../src/event-loop/sample.js';
import { randomOf } from '../../../fixtures/random.js';
import { frame, route, SimulatedLoop, type Traffic } from '../../../fixtures/simulated-loop.js';

const MINUTE_MS = 60_000;

function sampleOf(loop: SimulatedLoop, state: RequestState | null, given: Partial<Sample> = {}): Sample {
  return { atMs: loop.nowMs, askedMs: loop.nowMs, due: 1, frames: [frame('work')], state, cut: false, ...given };
}

describe('shares of the loop', () => {
  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])('are within 2 points of the truth after 2,000 samples (seed %i)', (seed) => {
    const loop = new SimulatedLoop(randomOf(seed));
    const traffic: Traffic[] = [
      { route: route('/a'), perSecond: 40, workMs: () => 1 },
      { route: route('/b'), perSecond: 30, workMs: () => 4 },
      { route: route('/c'), perSecond: 10, workMs: () => 20 },
      { route: route('/blocks'), perSecond: 0.5, workMs: () => 250 },
      { route: route('/native'), perSecond: 2, workMs: () => 40, native: true },
    ];
    loop.run(100, traffic);
    expect(loop.samples).toBeGreaterThan(2_000);
    for (const { route } of traffic) {
      const truth = loop.workedMs.get(route)! / loop.nowMs;
      expect(Math.abs(loop.profile.shareOfLoop([route]) - truth)).toBeLessThan(0.02);
    }
    const all = traffic.reduce((sum, { route }) => sum + loop.workedMs.get(route)!, 0);
    expect(Math.abs(loop.profile.shareOfLoop(traffic.map((each) => each.route)) - all / loop.nowMs)).toBeLessThan(0.04);
  });

  it('are of all time, also of that without samples', () => {
    const loop = new SimulatedLoop(randomOf(1));
    const orders = route('/orders');
    for (let i = 0; i < 20; i++) loop.profile.add(sampleOf(loop, loop.request(orders)), 50);
    loop.nowMs = MINUTE_MS;
    expect(loop.profile.shareOfLoop([orders])).toBeCloseTo(1 / 60, 6);
  });

  it('forget what was more than 10 minutes ago', () => {
    const loop = new SimulatedLoop(randomOf(1));
    const [old, fresh] = [route('/old'), route('/fresh')];
    for (let i = 0; i < 30; i++) loop.profile.add(sampleOf(loop, loop.request(old)), 50);
    loop.nowMs = HALF_MS + MINUTE_MS;
    loop.profile.add(sampleOf(loop, loop.request(fresh)), 50);
    expect(loop.profile.ownCpuMs([old])).not.toBeNull();
    loop.nowMs = 2 * HALF_MS + 2 * MINUTE_MS;
    expect(loop.profile.shareOfLoop([old])).toBe(0);
    expect(loop.profile.ownCpuMs([old])).toBeNull();
    expect(loop.profile.shareOfLoop([fresh])).toBeGreaterThan(0);
    expect(loop.profile.sampledMs(old)).toBe(1_500);
    loop.nowMs = 10 * HALF_MS;
    expect(loop.profile.shareOfLoop([fresh])).toBe(0);
    // Nothing was sampled for so long that nothing is known.
    expect(loop.profile.sampledMs(old)).toBeNull();
  });
});

describe('own CPU', () => {
  it('is divided by the requests of the same time', () => {
    const loop = new SimulatedLoop(randomOf(3));
    const reports = route('/reports');
    // The release before was ten times as slow.
    loop.run(240, [{ route: reports, perSecond: 4, workMs: () => 50 }]);
    loop.run(900, [{ route: reports, perSecond: 4, workMs: () => 5 }]);
    const { mean, ci } = loop.profile.ownCpuMs([reports])!;
    expect(mean).toBeGreaterThan(4);
    expect(mean).toBeLessThan(6);
    expect(ci[1]).toBeLessThan(8);
  });

  it('counts the samples of a resolver for the resolver and for its HTTP request', () => {
    const loop = new SimulatedLoop(randomOf(1));
    const [graphql, resolver] = [route('/graphql'), route('Query.users')];
    for (let i = 0; i < 20; i++) {
      const [request, scope] = [loop.request(graphql), loop.request(resolver)];
      scope.within = request;
      loop.profile.add(sampleOf(loop, request), 10);
      loop.profile.add(sampleOf(loop, request, { scope }), 40);
      loop.profile.requestEnded(scope);
      loop.profile.requestEnded(request);
    }
    loop.nowMs = 10_000;
    expect(loop.profile.ownCpuMs([graphql])).toMatchObject({ mean: 50, samples: 40 });
    expect(loop.profile.ownCpuMs([resolver])).toMatchObject({ mean: 40, samples: 20 });
    expect([graphql, resolver].map((each) => loop.profile.sampledMs(each))).toEqual([1_000, 800]);
    expect([graphql, resolver].map((each) => loop.profile.shareOfLoop([each]))).toEqual([0.1, 0.08]);
    // A profile has each sample once.
    expect([...loop.profile.recent()[0]!.routes.keys()]).toEqual([graphql]);
  });

  it('is 0 of a route whose requests no sample has met', () => {
    const loop = new SimulatedLoop(randomOf(1));
    const [busy, quick] = [route('/busy'), route('/quick')];
    loop.profile.add(sampleOf(loop, loop.request(busy)), 50);
    loop.profile.requestEnded(loop.request(quick));
    expect(loop.profile.sampledMs(quick)).toBe(0);
  });

  it('adds up routes that share a row', () => {
    const loop = new SimulatedLoop(randomOf(1));
    const [v1, v2] = [route('/orders'), route('/orders')];
    for (let i = 0; i < 10; i++) for (const each of [v1, v2]) loop.profile.add(sampleOf(loop, loop.request(each)), 50);
    expect(loop.profile.ownCpuMs([v1])).toBeNull();
    expect(loop.profile.ownCpuMs([v1, v2])).toMatchObject({ mean: 50, samples: 20 });
  });
});

describe('a sample', () => {
  it('counts for the route that the framework matches after it', () => {
    const loop = new SimulatedLoop(randomOf(1));
    const orders = route('/orders');
    const state = loop.request(null);
    loop.profile.add(sampleOf(loop, state), 50);
    expect(loop.profile.recent()[0]!.samples).toBe(0);
    state.route = orders;
    expect(loop.profile.recent()[0]!.routes.get(orders)).toMatchObject({ samples: 1, ms: 50 });
  });

  it('counts as background when no route is known for long, in no context, and in that of another application', () => {
    const loop = new SimulatedLoop(randomOf(1));
    const others = new SimulatedLoop(randomOf(1));
    loop.profile.add(sampleOf(loop, loop.request(null)), 50);
    loop.profile.add(sampleOf(loop, null), 50);
    loop.profile.add(sampleOf(loop, others.request(route('/theirs'))), 50);
    loop.nowMs = MINUTE_MS;
    expect([...loop.profile.recent()[0]!.routes]).toEqual([[null, expect.objectContaining({ samples: 3 })]]);
  });

  it('counts as background long after its request has ended: a pool’s socket keeps the context of who opened it', () => {
    const loop = new SimulatedLoop(randomOf(1));
    const orders = route('/orders');
    const state = loop.request(orders);
    Object.assign(state, { endedMs: 1, closed: true });
    loop.profile.requestEnded(state);
    for (loop.nowMs = 100; loop.nowMs < 2 * HALF_MS + MINUTE_MS; loop.nowMs += 200)
      loop.profile.add(sampleOf(loop, state), 50);
    // Deferred work.
    expect(loop.profile.sampledMs(orders)).toBe(5 * 50);
    expect(loop.profile.shareOfLoop([orders])).toBe(0);
    expect(loop.profile.ownCpuMs([orders])).toBeNull();
  });

  it('without frames is idle, whatever the context store holds', () => {
    const loop = new SimulatedLoop(randomOf(1));
    loop.profile.add(sampleOf(loop, loop.request(route('/orders')), { frames: [] }), 50);
    expect(loop.profile.recent()[0]).toMatchObject({ samples: 1, idle: 1 });
    expect(loop.profile.recent()[0]!.routes.size).toBe(0);
  });
});
