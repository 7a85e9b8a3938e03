import { describe, expect, it } from 'vitest';
import { requestContext, type RequestOwner } from '../../../src/request/request-state.js';
import { Route } from '../../../src/request/routes.js';
import { Experiments } from '../../../src/experiments/experiments.js';
import type { GateClient } from '../../../src/index.js';
import { end, engineWith, owner, request, routeOf } from '../../fixtures/experiments/engine.js';

describe('the engine of experiments', () => {
  it('asks once a gate and request, and asks for the unit once a request', () => {
    let [checks, units] = [0, 0];
    const { engine } = engineWith({
      gates: { check: (_gate, { userId }) => ({ on: (checks += 1) % 2 === 1, rule: userId }) },
      unit: () => ({ userId: `unit-${(units += 1)}` }),
    });
    const state = request();
    state.frameworkRequest = {};
    expect([engine.isOn(state, 'a'), engine.isOn(state, 'b'), engine.isOn(state, 'a')]).toEqual([true, false, true]);
    expect([checks, units, state.unit?.userId]).toEqual([2, 1, 'unit-1']);
  });

  it('keeps `experiments.unit` apart from what `unit` has returned', () => {
    const { engine } = engineWith({ unit: () => ({ userId: 'visitor' }) });
    const before = Object.assign(request(), { frameworkRequest: {} });
    engine.isOn(before, 'gate');
    expect([before.unit, before.knownUnit]).toEqual([{ userId: 'visitor' }, undefined]);
    // Deferred work asks first, when the record has been written.
    const after = Object.assign(request(), { frameworkRequest: {}, closed: true, knownUnit: { userId: 'ann' } });
    engine.isOn(after, 'gate');
    expect(after.unit).toEqual({ userId: 'visitor' });
  });

  it('answers work that runs after the response, without changing the record that was written', () => {
    const { engine } = engineWith();
    const state = request();
    engine.isOn(state, 'before');
    end(engine, state);
    expect([engine.isOn(state, 'before'), engine.isOn(state, 'after')]).toEqual([true, true]);
    expect(state.variants).toEqual({ before: 'on' });
    expect(engine.totals().gates.map(({ gate }) => gate)).toEqual(['before']);
  });

  it('keeps totals of at most 100 gates on one route, and says so', () => {
    const { engine, warnings } = engineWith();
    for (let i = 0; i < 150; i++) {
      const state = request();
      expect(engine.isOn(state, `gate-${i}`)).toBe(true);
      end(engine, state);
    }
    expect(engine.totals().gates).toHaveLength(100);
    expect(warnings[0]).toBe(
      'experiments compare at most 100 pairs of gate and route. Gate `gate-100` is not compared on GET /work.',
    );
  });

  it('names the gates that have an answer, and reads the totals of one alone', () => {
    const { engine } = engineWith({ switchback: { gate: 'b' } });
    for (const gate of ['c', 'a']) {
      const state = request();
      engine.isOn(state, gate);
      end(engine, state);
    }
    expect(engine.gates()).toEqual(['a', 'b', 'c']);
    expect(engine.totals('c').gates.map(({ gate }) => gate)).toEqual(['c']);
    expect(engine.totals('none').gates).toEqual([]);
  });

  it('compares at most 100 pairs of gate and route, says so', () => {
    const { engine, warnings } = engineWith();
    for (let i = 0; i < 150; i++) {
      const state = request();
      engine.isOn(state, 'gate');
      end(engine, state, routeOf(`/route-${i}`));
    }
    expect(engine.totals().gates[0]!.routes).toHaveLength(100);
    expect(warnings).toEqual([
      'experiments compare at most 100 pairs of gate and route. Gate `gate` is not compared on GET /route-100.',
    ]);
  });

  it('never throws for a user that cannot be asked, and takes an answer with a problem for none', () => {
    const answer = { on: true, problem: new Error('stale rules') as never };
    const { engine, warnings } = engineWith({ gates: { check: () => answer } });
    const state = request();
    state.frameworkRequest = {
      get user(): never {
        throw new Error('no session');
      },
    };
    expect(engine.isOn(state, 'a')).toBe(false);
    expect(state.unit).toEqual({ userId: state.id });
    expect(warnings).toEqual([
      "unit() threw: no session. Such requests have no unit; experiments take the request's id instead.",
      'gate `a`: stale rules. Such requests run as "off" and are not compared.',
    ]);
  });

  it('decides a gate that is named like a property of every object', () => {
    const { engine } = engineWith();
    const state = request();
    expect(['a', 'constructor'].map((gate) => engine.isOn(state, gate))).toEqual([true, true]);
    expect(state.variants).toMatchObject({ constructor: 'on' });
  });

  it('leaves out what @SkipPerf() stands on', () => {
    const { engine } = engineWith();
    const state = request();
    engine.isOn(state, 'a');
    const handler = { name: 'C.m', skipped: true, slowMs: null };
    end(engine, state, new Route('GET', '/skipped', handler, () => {}));
    expect(engine.totals()).toMatchObject({ gates: [] });
  });

  it('has no figure of a request that was aborted', () => {
    const { engine } = engineWith();
    const route = routeOf('/work');
    for (const aborted of [true, false]) {
      const state = request();
      engine.isOn(state, 'a');
      end(engine, Object.assign(state, { aborted }), route);
    }
    expect(engine.totals().gates[0]!.routes[0]!.on.buckets).toMatchObject([{ 1: 1, 3: 1, 6: 1 }]);
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
    expect(engine.isOn(request(), 'a')).toBe(false);
    await engine.close(100);
    expect(warnings).toEqual([
      'gate `a`: the client answered without `on`. Such requests run as "off" and are not compared.',
      'The gate client failed to close: no close',
    ]);
  });
});

describe('Experiments.check()', () => {
  it('is false for the request of another application, and outside of one, and says so once', () => {
    const { engine, report, warnings } = engineWith();
    const mine = owner();
    const experiments = new Experiments(engine, mine, report);
    const checkIn = (of: RequestOwner) => requestContext.run(request(of), () => experiments.check('a'));
    expect([checkIn(mine), checkIn(owner())]).toEqual([true, false]);
    expect(experiments.check('a')).toBe(false);
    expect(warnings).toEqual(['Experiments.check() outside a request: it is false.']);
  });

  it('is false without the name of a gate, whoever decides', () => {
    const { engine, report, warnings } = engineWith();
    const mine = owner();
    const experiments = new Experiments(engine, mine, report);
    const state = request(mine);
    for (const gate of [undefined, null, 7, Symbol('even')])
      expect(requestContext.run(state, () => experiments.check(gate as never))).toBe(false);
    expect(state.variants).toBeNull();
    expect(warnings).toContain('Experiments.check() without the name of a gate, got `undefined`: it is false.');
  });
});
