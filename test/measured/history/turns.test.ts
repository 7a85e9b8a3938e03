import { afterEach, describe, expect, it } from 'vitest';
import type { HistoryStore } from '../../../src/history/history-store.js';
import { EncodedWindow } from '../../../src/history/rows/encoded-window.js';
import type { HistoryRow } from '../../../src/history/rows/row.js';
import { MINUTE_MS } from '../../../src/history/rows/tiers.js';
import { RouteSums } from '../../../src/history/rows/window.js';
import { countOf } from '../../fixtures/history.js';
import { ScriptedHistory } from '../../fixtures/scripted-history.js';

const START = Date.UTC(2026, 0, 5);
const MINUTES = process.env['PERF_LONG'] === undefined ? 3 : 6;
const ROUTES = Array.from({ length: 5_000 }, (_, i) => `GET /things-${i}/:id`);

/** Keeps what is finished. */
class Rows implements HistoryStore {
  readonly name = 'rows';
  readonly shared = false;
  readonly finished: HistoryRow[] = [];

  open = async () => ({
    write: async (finished: readonly HistoryRow[]) => void this.finished.push(...finished),
    read: async function* () {},
    close: async () => {},
  });
}

/** The longest turn of the event loop while it works, as a share of the time that it takes, and how many there were. */
async function turnsOf(work: () => Promise<unknown>): Promise<{ share: number; turns: number }> {
  const startedMs = performance.now();
  let [sinceMs, longestMs, turns, running] = [startedMs, 0, 0, true];
  const turn = (): void => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - sinceMs);
    sinceMs = nowMs;
    turns += 1;
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  running = false;
  turn();
  return { share: longestMs / (sinceMs - startedMs), turns };
}

describe('the minute of 5,000 routes', () => {
  const start = () => {
    const store = new Rows();
    return { store, scripted: new ScriptedHistory(START, { store }) };
  };
  const traffic = ({ counters }: ScriptedHistory): void => {
    for (const [i, route] of ROUTES.entries())
      for (const ms of [1, 5, 20, 80, 900]) counters.requests(route, 1, ms + (i % 7), { upstreamMs: ms / 2 });
  };
  let { store, scripted } = start();
  afterEach(() => ({ store, scripted } = start()));

  it('gives the event loop back every few milliseconds', async () => {
    const looks: { share: number; turns: number }[] = [];
    for (let minute = 0; minute < MINUTES; minute++) {
      traffic(scripted);
      looks.push(await turnsOf(() => scripted.tick()));
    }
    await scripted.history.close(10_000);
    expect(Math.min(...looks.map(({ turns }) => turns))).toBeGreaterThan(10);
    // A busy machine takes the process away now and then, and not in each of these minutes.
    expect(Math.min(...looks.map(({ share }) => share))).toBeLessThan(0.25);
  });

  it('is one minute: who reads or closes meanwhile gets all of it, once', async () => {
    traffic(scripted);
    const ticking = scripted.tick();
    await new Promise((next) => setImmediate(next));
    const read = scripted.history.history({ from: START, to: START + 60 * MINUTE_MS });
    const closing = scripted.history.close(10_000);
    const { points } = await read;
    expect(points.reduce((sum, { count }) => sum + count, 0)).toBe(5 * ROUTES.length);
    await Promise.all([ticking, closing]);
    for (const tier of ['1m', '5m', '1h'] as const) {
      const rows = store.finished.filter((row) => row.tier === tier);
      expect(rows.reduce((sum, row) => sum + countOf(row), 0)).toBe(5 * ROUTES.length);
      for (const { data } of rows) {
        const window = new EncodedWindow(data);
        const routes = window.routeNames.map((name) => window.addTo(new RouteSums(), name).count);
        expect(routes.reduce((sum, count) => sum + count, 0)).toBe(window.addTo(new RouteSums(), null).count);
      }
    }
  });
});

it('compares many routes without keeping the event loop', async () => {
  const scripted = new ScriptedHistory(START);
  const eachMs = 5 * MINUTE_MS;
  await scripted.minutes(
    8,
    (counters, window) => {
      for (let i = 0; i < 250; i++)
        counters.requests(`GET /route-${i}/:id`, 2, 100 + (window % 4) + (window < 4 ? 0 : i), { upstreamMs: 50 });
    },
    eachMs,
  );
  const middle = START + 4 * eachMs;
  const what = { before: { from: START, to: middle }, after: { from: middle, to: scripted.nowMs } };
  let compared = 0;
  const { share } = await turnsOf(async () => (compared = (await scripted.history.compare(what)).routes.length));
  expect(compared).toBe(250);
  expect(share).toBeLessThan(0.5);
});
