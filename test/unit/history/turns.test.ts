import { afterEach, describe, expect, it } from 'vitest';
import { OncePerCause } from '../../../src/core/reporter.js';
import { History } from '../../../src/history/history.js';
import type { HistoryStore } from '../../../src/history/history-store.js';
import type { HistoryRow } from '../../../src/history/rows/row.js';
import { EncodedWindow } from '../../../src/history/rows/window-codec.js';
import { countOf } from '../../fixtures/history.js';
import { ScriptedCounters } from '../../fixtures/scripted-counters.js';

const MINUTE_MS = 60_000;
const START = Date.UTC(2026, 0, 5);
const ROUTES = Array.from({ length: 5_000 }, (_, i) => `GET /things-${i}/:id`);

/** Keeps what is finished, and what ran at the last write. */
class Rows implements HistoryStore {
  readonly name = 'rows';
  readonly shared = false;
  finished: HistoryRow[] = [];

  open = async () => ({
    write: async (finished: readonly HistoryRow[]) => void this.finished.push(...finished),
    read: async function* () {},
    close: async () => {},
  });
}

/** Looks how long the event loop is kept; ends with the longest turn, and how many there were. */
function watchTurns(): () => { longestMs: number; turns: number } {
  let [sinceMs, longestMs, turns, running] = [performance.now(), 0, 0, true];
  const turn = (): void => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - sinceMs);
    sinceMs = nowMs;
    turns += 1;
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  return () => {
    running = false;
    return { longestMs: Math.max(longestMs, performance.now() - sinceMs), turns };
  };
}

describe('the minute of 5,000 routes', () => {
  let nowMs = START;
  const counters = new ScriptedCounters();
  const store = new Rows();
  const report = new OncePerCause({ log() {}, warn() {}, error() {} }, () => 0);
  const own = { pod: 'pod-1', instance: 'pod-1/1/a', release: '1.0.0' };
  const start = (): History => {
    nowMs = START;
    store.finished = [];
    const parts = { own, store, keepDays: 35, maxBytes: 2 ** 26, counters: counters.all, report, now: () => nowMs };
    const history = new History(parts, null);
    history.begin();
    return history;
  };
  const traffic = (): void => {
    for (const [i, route] of ROUTES.entries())
      for (const ms of [1, 5, 20, 80, 900]) counters.requests(route, 1, ms + (i % 7), { upstreamMs: ms / 2 });
  };
  let history = start();
  afterEach(() => (history = start()));

  it('gives the event loop back every few milliseconds', { timeout: 60_000 }, async () => {
    const looks: { share: number; turns: number }[] = [];
    for (let minute = 0; minute < 6; minute++) {
      traffic();
      nowMs += MINUTE_MS;
      const startedMs = performance.now();
      const ended = watchTurns();
      await history.tick();
      const { longestMs, turns } = ended();
      looks.push({ share: longestMs / (performance.now() - startedMs), turns });
    }
    await history.close(10_000);
    expect(Math.min(...looks.map(({ turns }) => turns))).toBeGreaterThan(10);
    // A busy machine takes the process away now and then, and not in each of six minutes.
    expect(Math.min(...looks.map(({ share }) => share))).toBeLessThan(0.25);
  });

  it('is one minute: who reads or closes meanwhile gets all of it, once', { timeout: 60_000 }, async () => {
    traffic();
    nowMs += MINUTE_MS;
    const ticking = history.tick();
    await new Promise((next) => setImmediate(next));
    const read = history.history({ from: START, to: START + 60 * MINUTE_MS });
    const closing = history.close(10_000);
    const { points } = await read;
    expect(points.reduce((sum, { count }) => sum + count, 0)).toBe(5 * ROUTES.length);
    await Promise.all([ticking, closing]);
    for (const tier of ['1m', '5m', '1h'] as const) {
      const rows = store.finished.filter((row) => row.tier === tier);
      expect(rows.reduce((sum, row) => sum + countOf(row), 0)).toBe(5 * ROUTES.length);
      for (const { data } of rows) {
        const window = new EncodedWindow(data);
        const routes = window.routeNames.map((name) => window.sums(name)!.count);
        expect(routes.reduce((sum, count) => sum + count, 0)).toBe(window.sums(null)!.count);
      }
    }
  });
});
