import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { displayJson } from '../../../src/core/printable.js';
import { DashboardView } from '../../../src/dashboard/dashboard-view.js';
import { readFleet } from '../../../src/dashboard/fleet-view.js';
import { NO_PAST, readPast } from '../../../src/dashboard/past.js';
import { RecentRecords } from '../../../src/dashboard/recent-records.js';
import { formatPage } from '../../../src/dashboard/text-view.js';
import { MINUTE_MS } from '../../../src/history/rows/tiers.js';
import { ScriptedHistory } from '../../fixtures/scripted-history.js';
import { sharedStore } from '../../fixtures/shared-history.js';

const START = Date.UTC(2026, 0, 5, 12);
const ROUTE = 'GET /users/:id';
const readAll = ({ history }: ScriptedHistory) =>
  readFleet(
    history,
    (id) => id,
    async () => NO_PAST,
  );

describe('the figures of all pods', () => {
  let isAway = false;
  let store = sharedStore();
  let pods: ScriptedHistory[] = [];

  beforeEach(() => {
    isAway = false;
    store = sharedStore({ isAway: () => isAway });
    pods = ['a', 'b'].map((pod) => {
      const own = { pod, instance: `${pod}/1/a`, release: pod === 'a' ? '1.0.0' : '1.1.0-canary' };
      return new ScriptedHistory(START, { own, store });
    });
    const now = vi.spyOn(Date, 'now').mockImplementation(() => pods[0]!.nowMs);
    onTestFinished(() => now.mockRestore());
  });

  const serve = async (minutes: number): Promise<void> => {
    for (const pod of pods) await pod.minutes(minutes, (counters) => counters.requests(ROUTE, 60, 20));
  };

  it('are of minutes that all pods have written, not of the one that runs', async () => {
    await serve(3);
    for (const pod of pods) {
      pod.counters.requests(ROUTE, 30, 20);
      pod.nowMs += MINUTE_MS / 2;
    }
    const { shown } = (await readAll(pods[0]!))!;
    expect(shown.traffic.map(([at, perSecond]) => [(at - START) / MINUTE_MS, perSecond])).toEqual([
      [0, 2],
      [1, 2],
      [2, 2],
    ]);
  });

  it('are none while the store is away: they would be those of one pod', async () => {
    await serve(2);
    expect((await readAll(pods[0]!))!.shown.totals!.count).toBe(240);
    isAway = true;
    expect(await readAll(pods[0]!)).toBe(null);
  });

  it('are none of the last hours of one pod', async () => {
    await serve(10);
    const [{ history }] = pods as [ScriptedHistory];
    const readRates = async (scope: 'pod' | 'fleet'): Promise<unknown[]> =>
      (await readPast(history, scope, null)).rows.map(([, perSecond]) => perSecond);
    expect([await readRates('pod'), await readRates('fleet')]).toEqual([
      [1, 1],
      [2, 2],
    ]);
  });

  it('have a mark where a release has come, not for those that were there before', async () => {
    await serve(10);
    const [{ history, nowMs }] = pods as [ScriptedHistory];
    expect((await readPast(history, 'fleet', null)).releases).toEqual([]);
    const own = { pod: 'c', instance: 'c/1/a', release: '2.0.0' };
    const fresh = new ScriptedHistory(nowMs, { own, store });
    await fresh.minutes(1, (counters) => counters.requests(ROUTE, 1, 20));
    pods[0]!.nowMs += MINUTE_MS;
    expect((await readPast(history, 'fleet', null)).releases).toEqual([{ at: nowMs, release: '2.0.0' }]);
  });

  it('mark the pod that is far above the median', async () => {
    await serve(2);
    const [{ history }] = pods as [ScriptedHistory];
    const minute = { ...(await history.pods())[0]!, loopBusy: 0.1, memoryBytes: 2 ** 28, p95Ms: 20 };
    const others = Array.from({ length: 4 }, (_, i) => ({ ...minute, pod: `pod-${i}`, instance: `pod-${i}` }));
    const odd = { ...minute, pod: 'odd', instance: 'odd', p95Ms: 90 };
    vi.spyOn(history, 'pods').mockResolvedValue([odd, ...others]);
    const { pods: rows, sections } = (await readAll(pods[0]!))!.shown;
    expect(rows!.map(({ pod, odd: keys }) => [pod, keys])).toEqual([
      ['odd', ['p95Ms']],
      ...others.map(({ pod }) => [pod, []]),
    ]);
    expect(sections.now.map(({ text }) => text)).toEqual(['Pod odd is the odd one: p95 90 ms, 20 ms in the median.']);
  });

  it('have room for a thousand pods beside their routes: the odd ones first', async () => {
    for (const pod of pods)
      await pod.minutes(1, (counters) => {
        for (let i = 0; i < 299; i++) counters.requests(`GET /a-resource-with-a-long-name/of-many/${i}`, 1, 20);
      });
    const [{ history, nowMs }] = pods as [ScriptedHistory];
    const minute = { ...(await history.pods())[0]!, loopBusy: 0.1, memoryBytes: 2 ** 28 };
    const many = Array.from({ length: 1_000 }, (_, i) => {
      const pod = `shop-api-7c9f6d5b8b-${String(i).padStart(5, '0')}`;
      return { ...minute, pod, instance: `${pod}/1/0123456789ab`, p95Ms: i === 999 ? 900 : 20 };
    });
    vi.spyOn(history, 'pods').mockResolvedValue(many);
    const host = { nowMs: () => nowMs, release: null, report: { report() {} } } as never;
    const view = new DashboardView(host, { history } as never, new RecentRecords(), 'app.js', false);
    const data = await view.read({ scope: null, route: null });
    expect(Buffer.byteLength(displayJson(data))).toBeLessThanOrEqual(256 * 1024);
    expect([data.podCount, data.pods![0]!.pod, data.routes.length]).toEqual([1_000, many[999]!.pod, 299]);
    expect(formatPage(data, NO_PAST, null)).toContain('All 1,000 pods');
  });
});
