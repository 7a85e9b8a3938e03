import { describe, expect, it } from 'vitest';
import { RouteSums } from '../../../src/history/rows/window.js';
import { VerdictEngine } from '../../../src/history/verdicts/engine.js';
import { JudgedWindow } from '../../../src/history/verdicts/judged-window.js';
import { allOf } from '../../fixtures/steps.js';

const WINDOW_MS = 300_000;
const START = Date.UTC(2026, 0, 5);

/** So many requests, each of `ownMs` of its own work and `waitMs` for the event loop. */
function sumsOf(requests: number, ownMs: number, waitMs: number): RouteSums {
  const ms = ownMs + waitMs;
  const all = { completed: requests, timed: requests, ownOf: requests, ownMs: requests * ownMs };
  const times = { sumMs: requests * ms, typicalMs: requests * ms, busyMs: requests * ms };
  return Object.assign(new RouteSums(), all, times);
}

/** What the first verdict blames when background work begins after `calm` windows; `reports`: how many are asked for in a window. */
function blamed(calm: number, reports: (window: number) => number): string {
  const engine = new VerdictEngine(() => []);
  for (let index = 0; index < calm + 4; index++) {
    const window = new JudgedWindow(START + index * WINDOW_MS);
    const isBusy = index >= calm;
    window.process.observedMs = WINDOW_MS;
    window.process.busyMs = (isBusy ? 0.6 : 0.2) * WINDOW_MS;
    window.routes.set('GET /feed', sumsOf(300, 20 + (index % 3), isBusy ? 200 : 50));
    if (reports(index) > 0) window.routes.set('GET /report', sumsOf(reports(index), 1_000, 50));
    const [verdict] = allOf(engine.judge(window));
    if (verdict !== undefined) return `${verdict.because[0]!.part}: ${verdict.because[0]!.name}`;
  }
  return 'nothing';
}

describe('what a verdict says of the event loop', () => {
  it('is not a heavy route that is asked for now and then as always', () => {
    expect(blamed(60, () => 5)).toBe('loop-wait: background work');
  });

  it('is not a heavy route that nobody has asked for in hours', () => {
    expect(blamed(100, (window) => (window >= 20 && window < 26 ? 60 : 0))).toBe('loop-wait: background work');
  });

  it('is the heavy route that is asked for more', () => {
    expect(blamed(60, (window) => (window < 60 ? 5 : 100))).toBe('loop-wait: more requests of GET /report');
  });
});
