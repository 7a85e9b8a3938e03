import { describe, expect, it } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/history/rows/tiers.js';
import type { ScriptedCounters } from '../../fixtures/scripted-counters.js';
import { ScriptedHistory } from '../../fixtures/scripted-history.js';

const START = Date.UTC(2026, 0, 5);
const ROUTE = 'GET /users/:id';

type Each = (counters: ScriptedCounters, isAfter: boolean, minute: number) => void;

/** The first half of so many minutes against the second. */
async function compareHalves(minutes: number, each: Each, route?: string) {
  const scripted = new ScriptedHistory(START);
  await scripted.minutes(minutes, (counters, minute) => each(counters, minute >= minutes / 2, minute));
  const middle = START + (minutes / 2) * MINUTE_MS;
  const what = { before: { from: START, to: middle }, after: { from: middle, to: scripted.nowMs } };
  return scripted.history.compare(what, { route: route ?? null });
}

describe('a comparison', () => {
  const slower: Each = (counters, isAfter, minute) => {
    const [jitter, more] = [(minute * 7) % 5, isAfter ? 60 : 0];
    counters.requests(ROUTE, 10, 100 + jitter + more, { upstreamMs: 80 + jitter + more });
    counters.requests('GET /cart', 10, 50 + jitter);
  };

  it('says what is slower, by how much and why, and what has not changed', async () => {
    const { routes, caveats, text } = await compareHalves(360, slower);
    const [first, second] = routes;
    expect([first!.route, second!.route]).toEqual([ROUTE, 'GET /cart']);
    expect(first!.latency.value).toBeCloseTo(60 / 102, 3);
    expect(first!.latency.ci[0]).toBeGreaterThan(0.5);
    expect(first!.latency.ci[1]).toBeLessThan(0.7);
    expect(first!.because).toEqual([{ part: 'upstream', name: 'http api.github.com', share: expect.closeTo(1, 6) }]);
    const [low, high] = second!.latency.ci;
    expect(low <= 0 && high >= 0).toBe(true);
    expect(caveats).toEqual([]);
    expect(text).toContain('GET /users/:id: slower, mean 102 → 162 ms, +59 %');
    expect(text).toContain('100 % of it is http api.github.com.');
    expect(text).toContain('1 other routes have not changed significantly.');
    const one = await compareHalves(10, slower, 'GET /cart');
    expect([one.whole.route, one.routes.length]).toEqual(['GET /cart', 1]);
  });

  it('says what other shares of the routes explain', async () => {
    const { whole, text } = await compareHalves(240, (counters, isAfter, minute) => {
      counters.requests('GET /fast', isAfter ? 2 : 18, 10 + (minute % 3));
      counters.requests('GET /slow', isAfter ? 18 : 2, 500 + (minute % 3));
    });
    expect(whole.latency.value).toBeGreaterThan(5);
    expect(whole.because[0]).toMatchObject({ part: 'mix', share: expect.closeTo(1, 2) });
    expect(text).toContain('No route has changed significantly.');
  });

  it('counts a GraphQL request once, not its resolvers as well', async () => {
    const { whole, routes } = await compareHalves(240, (counters, isAfter, minute) => {
      counters.requests('POST /graphql', 10, 100 + (minute % 3));
      counters.requests(ROUTE, isAfter ? 20 : 10, 10 + (minute % 3));
      counters.requests('GRAPHQL Query.users', isAfter ? 200 : 10, 90 + (minute % 3));
    });
    expect(whole.latency.value).toBeCloseTo(41 / 56 - 1, 2);
    expect(whole.because[0]).toMatchObject({ part: 'mix', share: expect.closeTo(1, 2) });
    expect(routes.map(({ route }) => route)).toContain('GRAPHQL Query.users');
  });

  it('compares the last day with the day before from memory alone', async () => {
    const scripted = new ScriptedHistory(START);
    const half = 24 * 12;
    await scripted.minutes(
      2 * half,
      (counters, window) => counters.requests(ROUTE, 10, (window < half ? 50 : 75) + (window % 4)),
      5 * MINUTE_MS,
    );
    const { before, after, whole, caveats } = await scripted.history.compare('day');
    expect([before.to - before.from, after.to - after.from].map((ms) => Math.round(ms / HOUR_MS))).toEqual([24, 24]);
    expect(whole.before.count + whole.after.count).toBeGreaterThanOrEqual(5_740);
    expect(whole.latency.value).toBeGreaterThan(0.45);
    expect(caveats).toEqual([]);
  });

  it('compares ranges of one length and of the same hours, the running bucket included', async () => {
    const scripted = new ScriptedHistory(START);
    scripted.nowMs += 3 * HOUR_MS + 17 * MINUTE_MS + 30_000;
    for (const [what, agoMs] of [
      ['day', DAY_MS],
      ['week', 7 * DAY_MS],
    ] as const) {
      const { before, after } = await scripted.history.compare(what);
      expect([after.to - after.from, before.to - before.from]).toEqual([DAY_MS, DAY_MS]);
      expect(after.from - before.from).toBe(agoMs);
      expect(after.to).toBeGreaterThan(scripted.nowMs);
    }
  });

  it('says what it does not know', async () => {
    const scripted = new ScriptedHistory(START);
    await scripted.minutes(2, (counters) => counters.requests(ROUTE, 1, 5));
    const week = await scripted.history.compare('week');
    expect(week.caveats).toEqual(['Nothing is known of the range before.']);
    expect(week.text).toBe(week.caveats.join(' '));
    expect(week.whole.latency).toEqual({ value: 0, ci: [-Infinity, Infinity] });
    const release = await scripted.history.compare('release');
    expect(release.caveats).toEqual(['No release before 1.0.0 is known.', 'Nothing is known of the range before.']);
    expect(release.text).toBe(release.caveats.join(' '));
    expect([release.whole.before.count, release.whole.after.count]).toEqual([0, 2]);
  });
});
