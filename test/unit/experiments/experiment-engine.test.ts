import { describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import { RequestUnits, userOf } from '../../../src/core/request-unit.js';
import { requestContext, RequestState, type RequestOwner } from '../../../src/core/request-state.js';
import { Route } from '../../../src/core/route.js';
import { ExperimentEngine } from '../../../src/experiments/experiment-engine.js';
import { Experiments } from '../../../src/experiments/experiments.js';
import { experimentsOption } from '../../../src/experiments/experiments.options.js';
import type { ExperimentsOptions, GateClient } from '../../../src/index.js';

const owner = (): RequestOwner => ({ attached: null, nextId: () => 'request-1', findRoute: () => null });
const allOn: GateClient = { check: () => ({ on: true }) };

function engineWith(options: Partial<ExperimentsOptions> = {}) {
  const warnings: string[] = [];
  const quiet = { log: () => {}, warn: (message: string) => void warnings.push(message), error: () => {} };
  const report = new OncePerCause(quiet, () => 0);
  const resolved = experimentsOption.read({ gates: allOn, ...options }, 'experiments')!;
  const engine = new ExperimentEngine(
    resolved,
    () => 0,
    report,
    new RequestUnits('unit', userOf, report),
    () => null,
  );
  return { engine, report, warnings };
}

function end(engine: ExperimentEngine, state: RequestState): void {
  state.route = new Route('GET', '/work', null, () => {});
  state.status = 200;
  state.endedMs = 10;
  state.closed = true;
  engine.ended(state);
}

describe('the engine of experiments', () => {
  it('asks once a gate and request, and asks for the unit once a request', () => {
    let [checks, units] = [0, 0];
    const { engine } = engineWith({
      gates: { check: (_gate, { userId }) => ({ on: (checks += 1) % 2 === 1, rule: userId }) },
      unit: () => ({ userId: `unit-${(units += 1)}` }),
    });
    const state = new RequestState(null, null, 0, owner());
    state.frameworkRequest = {};
    expect([engine.isOn(state, 'a'), engine.isOn(state, 'b'), engine.isOn(state, 'a')]).toEqual([true, false, true]);
    expect([checks, units, state.unit?.userId]).toEqual([2, 1, 'unit-1']);
  });

  it('answers work that runs after the response, without changing the record that was written', () => {
    const { engine } = engineWith();
    const state = new RequestState(null, null, 0, owner());
    engine.isOn(state, 'before');
    end(engine, state);
    expect([engine.isOn(state, 'before'), engine.isOn(state, 'after')]).toEqual([true, true]);
    expect(state.variants).toEqual({ before: 'on' });
    expect(engine.totals().gates.map(({ gate }) => gate)).toEqual(['before']);
  });

  it('keeps totals of at most 100 gates, and says so', () => {
    const { engine, warnings } = engineWith();
    for (let i = 0; i < 150; i++) {
      const state = new RequestState(null, null, 0, owner());
      expect(engine.isOn(state, `gate-${i}`)).toBe(true);
      end(engine, state);
    }
    expect(engine.totals().gates).toHaveLength(100);
    expect(warnings[0]).toBe(
      'gate `gate-100`: more than 100 gates; later ones are not compared. Its requests are left out of the comparison.',
    );
  });

  it('never throws for a user that cannot be asked, and takes an answer with a problem for none', () => {
    const answer = { on: true, problem: new Error('stale rules') as never };
    const { engine, warnings } = engineWith({ gates: { check: () => answer } });
    const state = new RequestState(null, null, 0, owner());
    state.frameworkRequest = {
      get user(): never {
        throw new Error('no session');
      },
    };
    expect(engine.isOn(state, 'a')).toBe(false);
    expect(state.unit).toEqual({ userId: state.id });
    expect(warnings).toEqual([
      "unit() threw: no session. Such requests have no unit; experiments take the request's id instead.",
      'gate `a`: stale rules. Its requests are left out of the comparison.',
    ]);
  });

  it('decides a gate that is named like a property of every object', () => {
    const { engine } = engineWith();
    const state = new RequestState(null, null, 0, owner());
    expect(['a', 'constructor'].map((gate) => engine.isOn(state, gate))).toEqual([true, true]);
    expect(state.variants).toMatchObject({ constructor: 'on' });
  });

  it('leaves out what @SkipPerf() stands on', () => {
    const { engine } = engineWith();
    const state = new RequestState(null, null, 0, owner());
    engine.isOn(state, 'a');
    const handler = { className: 'C', methodName: 'm', name: 'C.m', skipped: true, slowMs: null };
    state.route = new Route('GET', '/skipped', handler, () => {});
    state.status = 200;
    engine.ended(state);
    expect(engine.totals()).toMatchObject({ gates: [], traffic: [] });
  });

  it('survives a share, a check and a close that fail', async () => {
    const broken: GateClient = {
      check: () => undefined as never,
      share: () => {
        throw new Error('no share');
      },
      close: () => Promise.reject(new Error('no close')),
    };
    const { engine, warnings } = engineWith({ gates: broken });
    expect(engine.isOn(new RequestState(null, null, 0, owner()), 'a')).toBe(false);
    await engine.close(100);
    expect(warnings).toEqual([
      'gate `a`: the client answered without `on`. Its requests are left out of the comparison.',
      'The gate client failed to close: no close',
    ]);
  });
});

describe('Experiments.check()', () => {
  it('is false for the request of another application, and outside of one, and says so once', () => {
    const { engine, report, warnings } = engineWith();
    const mine = owner();
    const experiments = new Experiments(engine, mine, report);
    const state = (of: RequestOwner) => new RequestState(null, null, 0, of);
    expect(requestContext.run(state(mine), () => experiments.check('a'))).toBe(true);
    expect(requestContext.run(state(owner()), () => experiments.check('a'))).toBe(false);
    expect(experiments.check('a')).toBe(false);
    expect(warnings).toEqual([
      'Experiments.check() outside a request, or with the context store off (`context: true` switches it on): it is false.',
    ]);
  });
});
