import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { fileHistory } from '../../../src/index.js';
import { encodeWindow } from '../../../src/history/rows/encoded-window.js';
import { DAY_MS, HOUR_MS, keptMs, type Tier } from '../../../src/history/rows/tiers.js';
import { SiteWindow } from '../../../src/history/rows/window.js';
import { VerdictKeeper } from '../../../src/history/verdicts/verdict-keeper.js';
import { normal, randomOf } from '../../fixtures/random.js';
import { ScriptedHistory } from '../../fixtures/scripted-history.js';

const ROUTES = Array.from({ length: 50 }, (_, i) => `GET /route-${i}/:id`);
const random = randomOf(5);
/** From 2 ms to some seconds, as requests are. */
const duration = (): number => 20 * Math.exp(1.2 * normal(random));

/** A bucket of 50 routes, with so many requests each. */
function startBucket(requests: number): Buffer {
  const site = new SiteWindow();
  for (const route of ROUTES) {
    const window = site.openRoute(route);
    for (let i = 0; i < requests; i++) window.histogram.record(duration());
    window.completed = requests;
    window.sumMs = window.typicalMs = window.histogram.sumMs;
    for (const ms of [1_000, 2_000, 5_000]) window.over.set(ms, 3);
    for (const target of ['postgres db:5432/shop', 'redis cache:6379', 'http api.github.com'])
      window.called(target, 40, 900);
  }
  return encodeWindow(site);
}

describe('what the history of 50 routes costs', () => {
  const directory = mkdtempSync(join(tmpdir(), 'perf-history-cost-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const own = { pod: 'pod-1', instance: 'pod-1/1/a', release: '1.0.0' };

  it('a thousandth of a core: 60 ms of CPU a minute, with a file and verdicts', async () => {
    const from = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 2 * DAY_MS;
    const judge = new VerdictKeeper({ listUsers: () => [], report: () => {}, failed: () => {} });
    const store = fileHistory({ directory: join(directory, 'minutes') });
    const scripted = new ScriptedHistory(from, { own, store, judge });
    let usedMs = 0;
    const minutes = 90;
    for (let minute = 0; minute < minutes; minute++) {
      for (const route of ROUTES)
        for (let i = 0; i < 30; i++) scripted.counters.requests(route, 1, duration(), { upstreamMs: 1 });
      const begin = process.cpuUsage();
      await scripted.tick();
      const { user, system } = process.cpuUsage(begin);
      usedMs += (user + system) / 1_000;
    }
    await scripted.history.close(10_000);
    expect(usedMs / minutes).toBeLessThan(60);
  });

  it('64 MiB: 35 days of hours, two of five minutes and six hours of minutes', async () => {
    const [minute, window, hour] = [startBucket(60).length, startBucket(300).length, startBucket(3_600).length];
    const bytes = 360 * minute + 576 * window + 840 * hour;
    expect(bytes).toBeLessThan(64 * 2 ** 20);
  });

  it('a bucket of a quiet application keeps no memory but its own', () => {
    const data = encodeWindow(new SiteWindow());
    expect(data.buffer.byteLength).toBe(data.length);
  });

  it('35 days of the whole are read from the file in one go', async () => {
    const host = { keptMs: (tier: Tier) => keptMs(tier, 35), maxBytes: 2 ** 26 };
    const store = fileHistory({ directory });
    const open = await store.open(host);
    const newest = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS;
    const days = process.env['PERF_LONG'] === undefined ? 5 : 35;
    const data = startBucket(3_600);
    const rows = Array.from({ length: days * 24 }, (_, i) => {
      return { ...own, instance: 'before', tier: '1h' as const, at: newest - i * HOUR_MS, data };
    });
    await open.write(rows, []);
    await open.close();
    const { history } = new ScriptedHistory(Date.now(), { own, store });
    const range = { from: Date.now() - 35 * DAY_MS + HOUR_MS, to: Date.now() };
    const { points } = await history.history(range);
    await history.close(10_000);
    expect(points.length).toBeGreaterThanOrEqual(days * 24 - 1);
    expect(points.at(-2)!.count).toBe(50 * 3_600);
  });
});
