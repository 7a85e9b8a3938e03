import { describe, expect, it } from 'vitest';
import { experimentsOption } from '../../../../src/experiments/experiments.options.js';
import type { ExperimentsOptions } from '../../../../src/experiments/experiments.options.js';
import { GateStops } from '../../../../src/experiments/stop/gate-stops.js';
import { GateTally } from '../../../../src/experiments/totals/gate-tally.js';
import { hashText } from '../../../../src/experiments/unit-hash.js';
import { engineWith, owner, request, routeOf } from '../../../fixtures/experiments/engine.js';
import { SeededRandom } from '../../../fixtures/experiments/seeded-random.js';

const RUNS = process.env['PERF_LONG'] === undefined ? 20 : 40;

type Stop = NonNullable<ExperimentsOptions['stop']>;
interface World {
  stop: Stop;
  /** What `on` multiplies latency and blocked time with. */
  factor?: number;
  /** Shares of requests that fail: off, on. */
  failing?: readonly [number, number];
}

function shop({ stop, factor = 1, failing = [0, 0] }: World, seed: number) {
  const random = new SeededRandom(seed);
  const asked: string[] = [];
  const gates = {
    check(_gate: string, { userId }: { userId: string }) {
      asked.push(userId);
      return { on: hashText(userId, seed) % 2 === 0 };
    },
  };
  const { engine } = engineWith({ gates, stop });
  const [mine, route] = [owner(), routeOf('/work')];
  const speeds = Array.from({ length: 1_000 }, () => random.logNormal(0.3));
  const visit = () => {
    const user = random.integer(0, speeds.length - 1);
    const state = request(mine);
    state.frameworkRequest = { user: { id: user } };
    const on = engine.isOn(state, 'gate');
    const times = on ? factor : 1;
    const status = random.next() < failing[on ? 1 : 0] ? 500 : 200;
    const endedMs = 30 * speeds[user]! * random.logNormal(0.6) * times;
    Object.assign(state, { route, status, endedMs, closed: true, blockedMs: random.next() < 0.05 ? 60 * times : 0 });
    engine.ended(state);
    return { state, on };
  };
  /** Looks every 200 requests, as people who peek do; the number of requests until the stop. */
  const stopsAfter = (requests: number): number | null => {
    for (let i = 1; i <= requests; i++) {
      visit();
      if (i % 200 !== 0) continue;
      engine.checkStops();
      if (engine.stoppedBecause('gate') !== null) return i;
    }
    return null;
  };
  return { engine, asked, visit, stopsAfter };
}

const stopped = (world: World, runs: number, requests: number): number =>
  Array.from({ length: runs }, (_, seed) => shop(world, seed + 1).stopsAfter(requests)).filter((at) => at !== null)
    .length;

describe('a gate that stops itself', () => {
  it.each<[string, World, RegExp]>([
    [
      'p95',
      { stop: { p95: '+20 %' }, factor: 2 },
      /^p95 is about \d+ ms, \d+ ms when off, on GET \/work, beyond the limit of \+20 %$/,
    ],
    [
      'errors',
      { stop: { errors: '+0.5 %' }, failing: [0, 0.06] },
      /^[\d.]+ % of requests fail, 0 % when off, on GET \/work, beyond the limit of \+0.5 %$/,
    ],
    [
      'blockedMs',
      { stop: { blockedMs: '+50 %' }, factor: 5 },
      /^a request blocks the event loop for [\d.]+ ms, [\d.]+ ms when off, on GET \/work, beyond the limit of \+50 %$/,
    ],
  ])('is found by its %s', (_name, world, reason) => {
    for (let seed = 1; seed <= 5; seed++) {
      const { engine, stopsAfter } = shop(world, seed);
      expect(stopsAfter(6_000)).not.toBeNull();
      expect(engine.stoppedBecause('gate')).toMatch(reason);
    }
  });

  it('is not stopped by what lies at its limit, however often one looks: 5 of 100 at the most', () => {
    const atTheLimit = { stop: { p95: '+20 %', blockedMs: '+20 %' }, factor: 1.2 };
    const alike = { stop: { p95: '+1 %', errors: '+0.1 %' }, failing: [0.02, 0.02] } as const;
    for (const world of [atTheLimit, alike]) expect(stopped(world, RUNS, 4_000)).toBeLessThanOrEqual(RUNS / 10);
  });

  it('needs the same evidence on its first route whatever routes come later, and more on each of those', () => {
    const outcome = (failed: boolean) => ({ succeeded: !failed, failed, aborted: false, durationMs: 5, blockedMs: 0 });
    /** Requests of the route that fails, as the one of this place. */
    const stopsAfter = (place: number, routes: number): number => {
      const stops = new GateStops({ p95: null, errors: 0.005, blockedMs: null });
      const tallies = Array.from({ length: routes }, () => new GateTally());
      const gates = new Map([['gate', new Map(tallies.map((tally, i) => [routeOf(`/${i + 1}`), tally]))]]);
      for (const tally of tallies) for (const on of [true, false]) tally.add(on, 1, outcome(false), 0.5);
      const random = new SeededRandom(7);
      for (let i = 1; i < 20_000; i++) {
        const on = i % 2 === 0;
        tallies[place - 1]!.add(on, random.integer(0, 2 ** 31), outcome(on && random.next() < 0.05), 0.5);
        if (i % 10 === 0 && stops.check(gates).length > 0) return i;
      }
      return Infinity;
    };
    const first = stopsAfter(1, 1);
    expect(stopsAfter(1, 20)).toBe(first);
    const [fifth, last] = [stopsAfter(5, 20), stopsAfter(20, 20)];
    expect(fifth).toBeGreaterThan(first);
    expect(last).toBeGreaterThan(fifth);
    expect(last).toBeLessThan(20_000);
  });

  it('is answered off without asking the client, is not counted, and begins anew when it is resumed', () => {
    const { engine, asked, visit, stopsAfter } = shop({ stop: { p95: '+20 %' }, factor: 3 }, 1);
    expect(engine.resume('gate')).toBe(false);
    expect(stopsAfter(4_000)).not.toBeNull();
    const [counted, before] = [JSON.stringify(engine.totals().gates), asked.length];
    for (let i = 0; i < 50; i++) expect(visit()).toMatchObject({ on: false, state: { variants: { gate: 'off' } } });
    expect(asked).toHaveLength(before);
    expect(JSON.stringify(engine.totals().gates)).toBe(counted);
    expect(engine.resume('gate')).toBe(true);
    expect(engine.totals().gates).toEqual([]);
    expect(Array.from({ length: 50 }, () => visit().on)).toContain(true);
    expect(stopsAfter(4_000)).not.toBeNull();
  });

  it.each<[unknown, string]>([
    [{ p95: '20 %' }, '`experiments.stop.p95` must be a rise in percent, such as `\'+20 %\'`, got `"20 %"` (string).'],
    [{ errors: 0.5 }, "`experiments.stop.errors` must be a rise in percent, such as `'+20 %'`, got `0.5` (number)."],
    [{}, '`experiments.stop` must be an object with at least one of `p95`, `errors` and `blockedMs`, got an object.'],
    [{ p99: '+1 %' }, '`experiments.stop.p99` is not an option. Known options: '],
  ])('refuses %o', (stop, message) => {
    const gates = { check: () => ({ on: true }) };
    expect(() => experimentsOption.read({ gates, stop }, 'experiments')).toThrow(`PERF_ERR_OPTION: ${message}`);
  });
});
