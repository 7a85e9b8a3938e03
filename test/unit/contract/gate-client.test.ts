import { StatsigServer } from 'statsig-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GateClient, staticGates, type Unit } from '../../../src/index.js';
import { statsigGates, type StatsigGateClient } from '../../../src/entries/statsig.js';
import { type Loopback, startLoopback } from '../../../examples/ab-test/loopback.js';

const GATES = { all: 100, none: 0, half: 50 };
const users = Array.from({ length: 1_000 }, (_, i): Unit => ({ userId: `u${i}` }));

let loopback: Loopback;
beforeAll(async () => void (loopback = await startLoopback(GATES)));
afterAll(() => loopback.close());

/** A client that reaches nothing but the loopback server. */
function client(): StatsigServer {
  const { api } = loopback;
  return new StatsigServer('secret-loopback', {
    api,
    initStrategyForIDLists: 'none',
    initStrategyForIP3Country: 'none',
    disableRulesetsSync: true,
    disableDiagnostics: true,
    postLogsRetryLimit: 0,
    // The SDK reports its own errors to the internet whatever `api` says.
    networkOverrideFunc: (url, params) =>
      url.startsWith(api) ? fetch(url, params) : Promise.reject(new Error('no internet in tests')),
  });
}

/** What `@statsig/statsig-node-core` does differently, as far as gates are concerned; its native binary cannot run here. */
class CoreUser {
  constructor(readonly fields: { userID: string }) {}
}
const coreClient: StatsigGateClient = {
  getFeatureGate(user: unknown, gate: string) {
    if (!(user instanceof CoreUser)) throw new TypeError('Failed to recover `StatsigUser` type from napi value');
    const pass = (GATES as Record<string, number>)[gate];
    if (pass === undefined) return { value: false, ruleID: '', details: { reason: 'Network:Unrecognized' } };
    const value = staticGates({ [gate]: pass / 100 }).check(gate, { userId: user.fields.userID }).on;
    return { value, ruleID: 'half', details: { reason: 'Network:Recognized' } };
  },
  flushEvents: () => Promise.resolve({ isSuccess: true }),
};

const suites: [string, () => Promise<GateClient>][] = [
  ['staticGates', () => Promise.resolve(staticGates({ all: true, none: false, half: 0.5 }))],
  [
    'statsigGates over statsig-node',
    async () => {
      const statsig = client();
      await statsig.initializeAsync();
      return statsigGates(statsig);
    },
  ],
  [
    'statsigGates over the shape of statsig-node-core',
    () => Promise.resolve(statsigGates(coreClient, { user: ({ userId }) => new CoreUser({ userID: userId }) })),
  ],
];

describe.each(suites)('%s', (_name, make) => {
  it('is on for all, none, and half of the units, each the same every time', async () => {
    const gates = await make();
    const onFor = (gate: string): number => users.filter((unit) => gates.check(gate, unit).on).length;
    expect([onFor('all'), onFor('none')]).toEqual([1_000, 0]);
    expect(Math.abs(onFor('half') - 500)).toBeLessThan(65);
    expect(users.map((unit) => gates.check('half', unit))).toEqual(users.map((unit) => gates.check('half', unit)));
    await gates.close?.();
  });

  it('answers off with a reason for a gate that it does not know', async () => {
    const gates = await make();
    expect(gates.check('unheard of', users[0]!)).toEqual({ on: false, problem: expect.stringMatching(/\S/) });
    expect(gates.check('all', users[0]!)).not.toHaveProperty('problem');
    await gates.close?.();
  });
});

describe('statsigGates', () => {
  it('decides as the SDK does', async () => {
    const statsig = client();
    await statsig.initializeAsync();
    const gates = statsigGates(statsig);
    const viaSdk = users.filter(({ userId }) => statsig.checkGate({ userID: userId }, 'half')).length;
    expect(users.filter((unit) => gates.check('half', unit).on)).toHaveLength(viaSdk);
    await gates.close?.();
  });

  it('is off, and does not throw, before initialisation, after shutdown, and for a unit without an id', async () => {
    const statsig = client();
    const gates = statsigGates(statsig);
    expect(gates.check('all', users[0]!)).toMatchObject({ on: false, problem: expect.stringContaining('nitialize') });
    await statsig.initializeAsync();
    expect(gates.check('all', users[0]!).on).toBe(true);
    expect(gates.check('all', {} as Unit)).toMatchObject({ on: false, problem: expect.any(String) });
    await statsig.shutdownAsync(500);
    expect(gates.check('all', users[0]!)).toMatchObject({ on: false, problem: expect.any(String) });
  });

  it('lets the SDK log one exposure a user, and flushes them when it is closed', async () => {
    const statsig = client();
    await statsig.initializeAsync();
    const gates = statsigGates(statsig);
    loopback.events.length = 0;
    for (const unit of users.slice(0, 20)) gates.check('half', unit);
    for (const unit of users.slice(0, 20)) gates.check('half', unit);
    await gates.close?.();
    const exposures = loopback.events.filter(({ eventName }) => eventName === 'statsig::gate_exposure');
    expect(exposures).toHaveLength(20);
    expect(new Set(exposures.map(({ user }) => user.userID)).size).toBe(20);
    expect(exposures[0]!.metadata).toMatchObject({ gate: 'half' });
  });

  it('hands ids and custom ids to the SDK, or whatever `user` makes of them', () => {
    const seen: unknown[] = [];
    const recording: StatsigGateClient = {
      getFeatureGate(user: never) {
        seen.push(user);
        return { value: true, ruleID: 'r' };
      },
    };
    const unit: Unit = { userId: 'u1', customIds: { podId: 'p1' } };
    expect(statsigGates(recording).check('all', unit)).toEqual({ on: true, rule: 'r' });
    statsigGates(recording, { user: ({ userId }) => ({ userID: userId, country: 'NL' }) }).check('all', unit);
    expect(seen).toEqual([
      { userID: 'u1', customIDs: { podId: 'p1' } },
      { userID: 'u1', country: 'NL' },
    ]);
  });

  it('says which package is missing for a client of the core SDK', async () => {
    const gates = statsigGates(coreClient);
    expect(gates.check('all', users[0]!)).toEqual({ on: false, problem: 'the SDK is not loaded yet' });
    const deadline = Date.now() + 20_000;
    while (gates.check('all', users[0]!).problem === 'the SDK is not loaded yet' && Date.now() < deadline) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(gates.check('all', users[0]!).problem).toBe(
      'PERF_ERR_MISSING_PEER: statsigGates() needs the package `@statsig/statsig-node-core`, which is not installed. Run: npm install @statsig/statsig-node-core',
    );
  });
});
