import { randomUUID } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { redisHistory } from '../../../src/entries/redis.js';
import type { HistoryStore, OpenHistoryStore } from '../../../src/history/history-store.js';
import { encodeWindow, EncodedWindow, packSums } from '../../../src/history/rows/encoded-window.js';
import type { HistoryRow } from '../../../src/history/rows/row.js';
import { HOUR_MS, keptMs, MINUTE_MS, type Tier } from '../../../src/history/rows/tiers.js';
import { RouteWindow } from '../../../src/history/rows/window.js';
import { windowOf } from '../../fixtures/history.js';
import { adminOf, ownRedis } from '../../fixtures/redis.js';
import { ScriptedHistory } from '../../fixtures/scripted-history.js';

const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 2 * HOUR_MS;
const range = { from: hour, to: hour + HOUR_MS };
const connection = { host: new URL(inject('redisUrl')).hostname, port: Number(new URL(inject('redisUrl')).port) };

/** A pod's connection to a store. */
async function opened(store: HistoryStore): Promise<OpenHistoryStore> {
  const open = await store.open({ keptMs: (tier: Tier) => keptMs(tier, 35), maxBytes: 2 ** 26 });
  onTestFinished(() => open.close());
  return open;
}

function admin(): Redis {
  const client = new Redis(inject('redisUrl'));
  onTestFinished(() => client.disconnect());
  return client;
}

let parts = 0;
/** What a pod has counted in a minute. */
function partOf(requests: number, given: Partial<HistoryRow> & { route?: string; ms?: number } = {}): HistoryRow {
  const { route = 'GET /users/:id', ms = 10, ...row } = given;
  const site = windowOf(requests, route, ms);
  site.openRoute(route).called('redis cache:6379', 2 * requests, 3.25 * requests);
  site.openRoute(route).over.set(1_000, ms > 1_000 ? requests : 0);
  const data = encodeWindow(site);
  return { tier: '1m', at: hour, pod: 'a', instance: 'a/1', release: '1.0.0', part: (parts += 1), data, ...row };
}

async function rowsIn(store: OpenHistoryStore, tier: Tier = '1h') {
  const rows: (Omit<HistoryRow, 'data'> & { window: EncodedWindow })[] = [];
  for await (const { data, ...row } of store.read(tier, range)) rows.push({ ...row, window: new EncodedWindow(data) });
  return rows;
}

async function wholeOf(store: OpenHistoryStore, route: string | null = null, tier: Tier = '1h'): Promise<RouteWindow> {
  const sum = new RouteWindow();
  for (const { window } of await rowsIn(store, tier)) window.addTo(sum, route);
  return sum;
}

const byRelease = async (store: OpenHistoryStore): Promise<Record<string, number>> =>
  Object.fromEntries(
    (await rowsIn(store)).map(({ release, window }) => [release, window.addTo(new RouteWindow(), null).count]),
  );

describe('redisHistory', () => {
  const made = () => redisHistory({ connection, prefix: `perf:history-test:${randomUUID()}` });

  it('adds what pods have counted, to the request, in every tier', async () => {
    const store = made();
    const [a, b] = [await opened(store), await opened(store)];
    await a.write([partOf(3), partOf(4, { at: hour + 60_000 })], []);
    await b.write([partOf(5, { ms: 2_000 }), partOf(1, { route: 'GET /cart' })], []);
    for (const pod of [a, b]) {
      for (const tier of ['1m', '5m', '1h'] as const) expect((await wholeOf(pod, null, tier)).completed).toBe(13);
      const users = await wholeOf(pod, 'GET /users/:id');
      expect([users.completed, users.sumMs, users.over.get(1_000)]).toEqual([12, 10_070, 5]);
      expect(users.targets.get('redis cache:6379')).toEqual({ calls: 24, wallMs: 39 });
      expect([users.histogram.count, users.histogram.minMs, users.histogram.maxMs]).toEqual([12, 10, 2_000]);
      expect(users.histogram.quantileMs(0.95) / 2_000).toBeCloseTo(1, 1);
      expect((await wholeOf(pod, 'GET /cart')).completed).toBe(1);
    }
    const [row] = await rowsIn(a);
    expect([row!.at, row!.release, row!.window.process.observedMs]).toEqual([hour, '1.0.0', 240_000]);
  });

  it('counts a part once that comes again after a lost answer, also beside newer ones', async () => {
    const store = made();
    const pod = await opened(store);
    const [first, second] = [partOf(3), partOf(4)];
    await pod.write([first], []);
    await pod.write([first, second], []);
    await pod.write([first, second], []);
    expect((await wholeOf(pod)).completed).toBe(7);
  });

  it('counts a part once that comes again hours after it was added, beside one that could not be', async () => {
    const prefix = `perf:history-test:${randomUUID()}`;
    const pod = await opened(redisHistory({ connection, prefix }));
    const [first, second] = [partOf(3), partOf(4, { at: hour + 5 * MINUTE_MS })];
    const wrong = `${prefix}:3:{5m:${second.at}}`;
    await admin().set(wrong, 'no hash');
    await expect(pod.write([first, second], [])).rejects.toThrow('WRONGTYPE');
    // Redis forgets by then which parts it has.
    await admin().del(`${prefix}:3:{1m:${hour}}:parts`, `${prefix}:3:{5m:${hour}}:parts`, wrong);
    await pod.write([first, second], []);
    expect((await wholeOf(pod, null, '5m')).completed).toBe(7);
  });

  it('keeps a part for hours that Redis has no memory for', async () => {
    const redis = await ownRedis();
    const given = { connection: { host: '127.0.0.1', port: redis.port }, prefix: 'shop' };
    const [pod, client] = [await opened(redisHistory(given)), adminOf(redis)];
    await client.config('SET', 'maxmemory', '1');
    const part = partOf(3);
    await expect(pod.write([part], [])).rejects.toThrow('OOM');
    const now = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 90 * MINUTE_MS);
    onTestFinished(() => now.mockRestore());
    await expect(pod.write([part], [])).rejects.toThrow('OOM');
    await client.config('SET', 'maxmemory', '0');
    await pod.write([part], []);
    expect((await wholeOf(pod)).completed).toBe(3);
  });

  it('has the same typical time of a minute, whoever reads meanwhile', async () => {
    const typicalMs = async (isRead: boolean): Promise<number> => {
      const store = made();
      const pod = new ScriptedHistory(hour, { store });
      pod.counters.requests('GET /users', 39, 10);
      pod.counters.requests('GET /users', 1, 10_000);
      pod.nowMs += MINUTE_MS / 2;
      if (isRead) await pod.history.history(range);
      pod.counters.requests('GET /users', 160, 10);
      await pod.tick(MINUTE_MS / 2);
      await pod.history.close(5_000);
      return (await wholeOf(await opened(store))).typicalMs;
    };
    const alone = await typicalMs(false);
    expect(alone).toBeLessThan(2_100);
    expect(await typicalMs(true)).toBeCloseTo(alone, 0);
  });

  it('keeps the counts of releases apart, up to four in a bucket', async () => {
    const store = made();
    const [old, fresh] = [await opened(store), await opened(store)];
    await old.write([partOf(3, { release: '1.0.0' })], []);
    await fresh.write([partOf(4, { release: '2.0.0' })], []);
    await old.write([partOf(5, { release: '1.0.0' })], []);
    expect(await byRelease(old)).toEqual({ '1.0.0': 8, '2.0.0': 4 });
    for (let minor = 0; minor < 6; minor++) await old.write([partOf(1, { release: `2.${minor}.1` })], []);
    const named = { '1.0.0': 8, '2.0.0': 4, '2.0.1': 1, '2.1.1': 1 };
    expect(await byRelease(old)).toEqual({ ...named, '': 4, '2.2.1': 0, '2.3.1': 0, '2.4.1': 0, '2.5.1': 0 });
  });

  it('does not grow with pods and restarts, but for who wrote last', async () => {
    const prefix = `perf:history-test:${randomUUID()}`;
    const store = redisHistory({ connection, prefix });
    const sizes: number[] = [];
    for (let i = 0; i < 12; i++) {
      const pod = await opened(store);
      await pod.write([partOf(10)], []);
      await pod.close();
      sizes.push(await admin().hlen(`${prefix}:3:{1h:${hour}}`));
    }
    expect(new Set(sizes).size).toBe(1);
    expect(await admin().hlen(`${prefix}:3:{1h:${hour}}:parts`)).toBe(12);
    expect(await admin().pttl(`${prefix}:3:{1h:${hour}}:parts`)).toBeLessThanOrEqual(2 * HOUR_MS);
    expect(await admin().pttl(`${prefix}:3:{1h:${hour}}`)).toBeGreaterThan(34 * 24 * HOUR_MS);
  });

  it('leaves out what nobody of ours has written', async () => {
    const prefix = `perf:history-test:${randomUUID()}`;
    const pod = await opened(redisHistory({ connection, prefix }));
    await pod.write([partOf(3)], []);
    const key = `${prefix}:3:{1h:${hour}}`;
    const whole = JSON.stringify(['1.0.0', '']);
    const sums = new Map<number | string, number>([
      [-1, 3],
      [-2, -7],
      [-99, 1],
      [7, 1],
      ['>x', 9],
      ['>0', 9],
      ['tredis', 1],
    ]);
    const counts = new Map([
      [40, new Map([[-1, 9]])],
      [3, new Map([[5, 9]])],
    ]);
    await admin().hset(key, {
      junk: '1',
      '["a"': '1',
      '[1,2]': '1',
      '["1.0.0","GET \\/none"]': 'no sums',
      [JSON.stringify(['1.0.0', 'process'])]: 'no sums',
      [whole]: packSums(sums, counts),
    });
    const found = await wholeOf(pod);
    expect([found.completed, found.aborted, found.histogram.count, found.over.size]).toEqual([3, 0, 0, 0]);
    expect((await wholeOf(pod, 'GET /none')).count).toBe(0);
    // What is there is replaced where it is no sum.
    await pod.write([partOf(2, { route: 'GET /none' })], []);
    expect((await wholeOf(pod, 'GET /none')).count).toBe(2);
  });

  it('hands the lead on, and keeps verdicts of the leader alone', async () => {
    const store = made();
    const [a, b] = [(await opened(store)).fleet!, await opened(store)];
    const nothing = { kept: null };
    expect([await a.lead(true), await b.fleet!.lead(true), await a.lead(true)]).toEqual([
      { leads: true, ...nothing },
      { leads: false, ...nothing },
      { leads: true, ...nothing },
    ]);
    const kept = { judgedUntil: hour, verdicts: [] };
    expect([await b.fleet!.keepVerdicts(kept), await a.keepVerdicts(kept)]).toEqual([false, true]);
    expect(await b.fleet!.lead(true)).toEqual({ leads: false, kept });
    const third = await opened(store);
    expect(await third.fleet!.lead(true)).toEqual({ leads: false, kept });
  });

  it('lets the lease end of a pod that cannot read', async () => {
    const prefix = `perf:history-test:${randomUUID()}`;
    const store = redisHistory({ connection, prefix });
    const [a, b] = [(await opened(store)).fleet!, (await opened(store)).fleet!];
    await a.lead(true);
    const client = admin();
    await client.pexpire(`${prefix}:{fleet}:leader`, 5_000);
    expect((await a.lead(false)).leads).toBe(true);
    expect(await client.pttl(`${prefix}:{fleet}:leader`)).toBeLessThanOrEqual(5_000);
    await client.del(`${prefix}:{fleet}:leader`);
    expect([(await a.lead(false)).leads, (await b.lead(true)).leads]).toEqual([false, true]);
  });

  it('shows no verdict that nobody of ours has written', async () => {
    const prefix = `perf:history-test:${randomUUID()}`;
    const { fleet } = await opened(redisHistory({ connection, prefix }));
    const right = { kind: 'worse', state: 'active', since: 1, change: 1, text: 'y', routes: ['GET /'] };
    const verdicts = [
      { ...right, id: 'a', ci: [0, 2], because: [{ part: 'own', name: 'GET /', share: 1 }] },
      { ...right, id: 'b', ci: [0, 2], because: [null] },
      { ...right, id: 'c', ci: [0, 2], because: [{ name: 1, share: 1 }] },
      { ...right, id: 'd', ci: ['0', 2], because: [] },
    ];
    await admin().set(`${prefix}:{fleet}:verdicts`, JSON.stringify({ judgedUntil: 1, verdicts }));
    expect((await fleet!.lead(true)).kept!.verdicts.map(({ id }) => id)).toEqual(['a']);
  });

  it('keeps its counts in a cluster, a slot for each bucket', async () => {
    const node = await ownRedis({ cluster: true });
    const open = new Redis(node.port, '127.0.0.1');
    onTestFinished(() => open.disconnect());
    await open.config('SET', 'requirepass', 'secret');
    const client = new Redis(node.port, '127.0.0.1', { password: 'secret' });
    onTestFinished(() => client.disconnect());
    await client.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await expect.poll(() => client.call('CLUSTER', 'INFO')).toContain('cluster_state:ok');
    const cluster = new Cluster([{ host: '127.0.0.1', port: node.port }], {
      lazyConnect: true,
      redisOptions: { password: 'secret' },
    });
    onTestFinished(() => cluster.disconnect());
    const pod = await opened(redisHistory({ connection: cluster, prefix: 'shop' }));
    await pod.write([partOf(3), partOf(4)], []);
    await pod.fleet!.lead(true);
    expect((await wholeOf(pod)).completed).toBe(7);
    const slots = await Promise.all(
      ['shop:3:{1h:1}', 'shop:3:{1h:1}:parts', 'shop:3:{5m:1}'].map((key) => client.call('CLUSTER', 'KEYSLOT', key)),
    );
    expect([slots[0] === slots[1], slots[0] === slots[2]]).toEqual([true, false]);
  });
});
