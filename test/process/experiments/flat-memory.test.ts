import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { staticGates } from '../../../src/index.js';
import { end, engineWith, owner, request, routeOf } from '../../fixtures/experiments/engine.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heldBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const USERS = process.env['PERF_LONG'] === undefined ? 200_000 : 1_000_000;

it(
  `${USERS} users cost no more memory than a thousand, and are still counted and compared`,
  { timeout: 120_000 },
  () => {
    const { engine } = engineWith({ gates: staticGates({ faster: 0.5 }) });
    const [mine, route] = [owner(), routeOf('/work')];
    engine.start();
    const visit = (from: number, to: number): void => {
      for (let user = from; user < to; user++) {
        const state = request(mine);
        state.frameworkRequest = { user: { id: user } };
        end(engine, state, route, (10 + (user % 7)) * (engine.isOn(state, 'faster') ? 0.9 : 1));
      }
    };
    visit(0, 1_000);
    const before = heldBytes();
    visit(1_000, USERS);
    const grownBytes = heldBytes() - before;
    expect(grownBytes).toBeLessThan(512 * 1024);
    const json = JSON.stringify(engine.totals());
    expect(json.length).toBeLessThan(100_000);
    const { on, off } = engine.totals().gates[0]!.routes[0]!;
    const counted = [...on.buckets, ...off.buckets].reduce((sum, row) => sum + row[1]!, 0);
    expect(counted).toBe(USERS);
  },
);
