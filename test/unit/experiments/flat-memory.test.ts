import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import { RequestUnits, userOf } from '../../../src/core/request-unit.js';
import { RequestState, type RequestOwner } from '../../../src/core/request-state.js';
import { Route } from '../../../src/core/route.js';
import { ExperimentEngine } from '../../../src/experiments/experiment-engine.js';
import { experimentsOption } from '../../../src/experiments/experiments.options.js';
import { staticGates } from '../../../src/index.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heldBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

// A million requests through the engine take a second or two.
it(
  'a million users cost no more memory than a thousand, and are still counted and compared',
  { timeout: 120_000 },
  () => {
    const owner: RequestOwner = { attached: null, nextId: () => 'id', findRoute: () => null };
    const quiet = { log: () => {}, warn: () => {}, error: () => {} };
    const options = experimentsOption.read({ gates: staticGates({ faster: 0.5 }) }, 'experiments')!;
    const report = new OncePerCause(quiet, () => 0);
    const engine = new ExperimentEngine(
      options,
      () => 0,
      report,
      new RequestUnits('unit', userOf, report),
      () => null,
    );
    engine.start();
    const route = new Route('GET', '/work', null, () => {});
    const visit = (from: number, to: number): void => {
      for (let user = from; user < to; user++) {
        const state = new RequestState(null, null, 0, owner);
        state.frameworkRequest = { user: { id: user } };
        state.route = route;
        state.endedMs = (10 + (user % 7)) * (engine.isOn(state, 'faster') ? 0.9 : 1);
        state.status = 200;
        engine.ended(state);
      }
    };
    visit(0, 1_000);
    const before = heldBytes();
    visit(1_000, 1_000_000);
    const grownBytes = heldBytes() - before;
    expect(grownBytes).toBeLessThan(512 * 1024);
    const json = JSON.stringify(engine.totals());
    expect(json.length).toBeLessThan(100_000);
    const { on, off } = engine.totals().gates[0]!.routes[0]!;
    const counted = [...on.buckets, ...off.buckets].reduce((sum, row) => sum + row[1]!, 0);
    expect(counted).toBe(1_000_000);
  },
);
