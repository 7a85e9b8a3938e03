import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { redisHistory } from '../../../src/entries/redis.js';
import { OncePerCause } from '../../../src/core/reporter.js';
import { History } from '../../../src/history/history.js';
import type { OpenHistoryStore } from '../../../src/history/history-store.js';
import { encodeWindow } from '../../../src/history/rows/encoded-window.js';
import type { HistoryRow } from '../../../src/history/rows/row.js';
import { DAY_MS, HOUR_MS, keptMs, MINUTE_MS, type Tier } from '../../../src/history/rows/tiers.js';
import { SiteWindow } from '../../../src/history/rows/window.js';
import { adminOf, ownRedis } from '../../fixtures/redis.js';
import { randomOf } from '../../fixtures/random.js';
import { ScriptedCounters } from '../../fixtures/scripted-counters.js';

const LONG = process.env['PERF_LONG'] !== undefined;
const PODS = LONG ? 1_000 : 20;
const ROUTES = Array.from({ length: 50 }, (_, i) => `GET /things/${i}/:id`);
const MINUTES = 12;
const PREFIX = 'shop';

const random = randomOf(7);

/** A minute of a pod: so many requests of each of fifty routes. */
function minuteOf(perRoute: number): Buffer {
  const site = new SiteWindow();
  site.process.observedMs = MINUTE_MS;
  for (const name of ROUTES) {
    const route = site.openRoute(name);
    for (let i = 0; i < perRoute; i++)
      route.histogram.record(2 + 20 * random() + (random() < 0.05 ? 400 * random() : 0));
    route.completed = perRoute;
    route.sumMs = route.typicalMs = route.histogram.sumMs;
    route.called('postgres db:5432/shop', 2 * perRoute, 8 * perRoute);
  }
  return encodeWindow(site);
}

async function inGroups<T>(items: readonly T[], work: (item: T, index: number) => Promise<void>): Promise<void> {
  for (let i = 0; i < items.length; i += 50)
    await Promise.all(items.slice(i, i + 50).map((item, n) => work(item, i + n)));
}

describe('a fleet on one Redis', { timeout: 1_800_000 }, () => {
  const host = {
    keptMs: (tier: Tier) => keptMs(tier, 35),
    maxBytes: 2 ** 26,
  };

  /** What any process reads of it. */
  async function readWith(store: ReturnType<typeof redisHistory>, ask: (history: History) => Promise<void>) {
    const report = new OncePerCause({ log() {}, warn() {}, error() {} }, () => 0);
    const own = { pod: 'reader', instance: 'reader', release: '' };
    const counters = new ScriptedCounters().all;
    const parts = { own, store, keepDays: 35, maxBytes: 2 ** 26, counters, report, now: () => Date.now() };
    const history = new History(parts, null);
    await ask(history);
    await history.close(5_000);
  }

  it(`${PODS} pods with clocks apart, restarts and a release: exact to the request, and no larger than one pod`, async () => {
    const redis = await ownRedis();
    const store = redisHistory({ connection: { host: '127.0.0.1', port: redis.port }, prefix: PREFIX });
    const admin: Redis = adminOf(redis);
    const kinds = [1, 2, 5].map((perRoute) => ({ perRoute, data: minuteOf(perRoute) }));
    const skews = Array.from({ length: PODS }, () => Math.round(4_000 * random() - 2_000));
    const from = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS;
    let pods: OpenHistoryStore[] = [];
    await inGroups(skews, async () => void pods.push(await store.open(host)));
    const parts = new Map<OpenHistoryStore, number>();
    let requests = 0;
    let tookMs = 0;
    const before = await commandsOf(admin);
    for (let minute = 0; minute < MINUTES; minute++) {
      const startedMs = performance.now();
      await inGroups(pods, async (pod, index) => {
        const { perRoute, data } = kinds[index % kinds.length]!;
        // Some have the new release from the sixth minute on.
        const release = minute >= 6 && index % 2 === 0 ? '2.0.0' : '1.0.0';
        const part = (parts.get(pod) ?? 0) + 1;
        parts.set(pod, part);
        const at = from + minute * MINUTE_MS + skews[index]! + MINUTE_MS / 2;
        const row: HistoryRow = { tier: '1m', at, pod: `pod-${index}`, instance: '', release, part, data };
        await pod.write([row], []);
        // An answer that was lost.
        if (index % 10 === 3) await pod.write([row], []);
        requests += perRoute * ROUTES.length;
      });
      tookMs += performance.now() - startedMs;
      // A tenth of them ends, and begins anew.
      const ending = pods.filter((_, index) => index % 10 === minute % 10);
      await inGroups(ending, (pod) => pod.close());
      pods = await Promise.all(pods.map(async (pod) => (ending.includes(pod) ? store.open(host) : pod)));
    }
    const commands = (await commandsOf(admin)) - before;
    const count = async (): Promise<number> => {
      let sum = 0;
      await readWith(store, async (history) => {
        const { points } = await history.history({ from, to: from + HOUR_MS });
        sum = points.reduce((all, point) => all + point.count, 0);
      });
      return sum;
    };
    expect(await count()).toBe(requests);
    const hourKey = `${PREFIX}:3:{1h:${from}}`;
    const fields = await admin.hlen(hourKey);
    const bytes = Number(await admin.memory('USAGE', hourKey, 'SAMPLES', 0));
    // A field for each route, the whole, the process and the release itself, of two releases, and their number.
    expect(fields).toBe(2 * (ROUTES.length + 3) + 1);
    // An hour of one process takes as much, for each release: its distributions are as wide.
    expect(bytes).toBeLessThan(80_000);
    await inGroups(pods, (pod) => pod.close());
    const figures = { PODS, requests, commands, fields, hourBytes: bytes, keys: await admin.dbsize() };
    console.log(JSON.stringify({ ...figures, msOfAMinute: Math.round(tookMs / MINUTES) }));
  });

  it.runIf(LONG)('keeps 35 days of fifty routes in 60 MB, and says how long they take to read', async () => {
    const redis = await ownRedis();
    const store = redisHistory({ connection: { host: '127.0.0.1', port: redis.port }, prefix: PREFIX });
    const pod = await store.open(host);
    const now = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
    const data = minuteOf(200);
    let part = 0;
    for (let at = now - 35 * DAY_MS; at < now; at += HOUR_MS) {
      const row: HistoryRow = { tier: '1m', at, pod: 'a', instance: '', release: '1.0.0', part: (part += 1), data };
      await pod.write([row], []);
    }
    await pod.close();
    let count = 0;
    let ms = 0;
    await readWith(store, async (history) => {
      await history.pods();
      ms = await timed(async () => {
        const { points } = await history.history({ from: now - 35 * DAY_MS, to: now });
        count = points.reduce((all, point) => all + point.count, 0);
      });
    });
    const bytes = Number(/used_memory:(\d+)/.exec(await adminOf(redis).info('memory'))![1]);
    console.log(JSON.stringify({ ms: Math.round(ms), bytes }));
    expect(count).toBe(35 * 24 * 200 * ROUTES.length);
    expect(bytes).toBeLessThan(60 * 2 ** 20);
  });
});

async function timed(work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return Math.round(performance.now() - startedMs);
}

const commandsOf = async (admin: Redis): Promise<number> =>
  Number(/total_commands_processed:(\d+)/.exec(await admin.info('stats'))![1]);
