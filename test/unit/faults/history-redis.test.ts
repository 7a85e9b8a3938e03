import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Controller, Get, Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freePort, startRedis, type RunningRedis } from '../../../scripts/redis.mjs';
import { PerfService, type HistoryStore } from '../../../src/index.js';
import { redisHistory } from '../../../src/entries/redis.js';
import { OncePerCause } from '../../../src/core/reporter.js';
import { History } from '../../../src/history/history.js';
import { startApp } from '../../fixtures/app.js';
import { startProxy } from '../../fixtures/redis-proxy.js';
import { ScriptedCounters } from '../../fixtures/scripted-counters.js';

@Controller()
class HelloController {
  @Get('hello')
  hello() {
    return 'hello';
  }
}

const LONG = process.env['PERF_LONG'] !== undefined;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

describe('redisHistory', () => {
  const cleanups: (() => unknown)[] = [];
  let dir = '';
  beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'perf-history-redis-'))));
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
    rmSync(dir, { recursive: true, force: true });
    Logger.overrideLogger(false);
  });
  const redisAt = async (port: number): Promise<RunningRedis> => {
    const redis = await startRedis({ own: true, port, appendOnly: true, dir });
    cleanups.push(() => redis.stop());
    return redis;
  };

  /** A pod with a clock of its own. */
  class Pod {
    nowMs = Date.now();
    readonly counters = new ScriptedCounters();
    readonly warnings: string[] = [];
    readonly history: History;

    constructor(name: string, store: HistoryStore, skewMs = 0) {
      const report = new OncePerCause({ log() {}, error() {}, warn: (line) => this.warnings.push(line) }, () => 0);
      this.nowMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS + skewMs;
      const own = { pod: name, instance: `${name}/1/a`, release: '1.0.0' };
      const parts = { own, store, keepDays: 35, maxBytes: 2 ** 26, counters: this.counters.all, report };
      this.history = new History({ ...parts, now: () => this.nowMs }, null);
      this.history.begin();
    }

    async minute(requests: number): Promise<void> {
      this.counters.requests('GET /hello', requests, 20);
      this.nowMs += MINUTE_MS;
      await this.history.tick();
    }

    async total(): Promise<number> {
      const { points } = await this.history.history({ from: this.nowMs - 2 * HOUR_MS, to: this.nowMs + HOUR_MS });
      return points.reduce((sum, { count }) => sum + count, 0);
    }
  }

  it('adds up three pods whose clocks differ', async () => {
    const port = await freePort();
    await redisAt(port);
    const store = redisHistory({ connection: { host: '127.0.0.1', port } });
    const pods = [new Pod('a', store), new Pod('b', store, 25_000), new Pod('c', store, -40_000)];
    for (let minute = 0; minute < 7; minute++) for (const pod of pods) await pod.minute(10);
    for (const pod of pods) expect([await pod.total(), pod.warnings]).toEqual([210, []]);
    // Another application on this Redis has keys of its own.
    const { Redis } = await import('ioredis');
    const client = new Redis(port, '127.0.0.1');
    expect((await client.keys('*')).every((key) => key.startsWith('perf:history:nestjs-perf:'))).toBe(true);
    client.disconnect();
    for (const pod of pods) await pod.history.close(5_000);
  });

  it('answers for all pods also whoever reads while another reader writes', async () => {
    const redis = await startRedis({ own: true });
    cleanups.push(() => redis.stop());
    const store = redisHistory({ connection: { host: '127.0.0.1', port: redis.port } });
    const [a, b] = [new Pod('a', store), new Pod('b', store)];
    await b.minute(10);
    await a.minute(1);
    expect(await Promise.all(Array.from({ length: 5 }, () => a.total()))).toEqual([11, 11, 11, 11, 11]);
    for (const pod of [a, b]) await pod.history.close(5_000);
  });

  it('gone for ten minutes and back, on the clock of the pods: memory stays whole, it is reported once, and what has waited arrives', async () => {
    const port = await freePort();
    const redis = await redisAt(port);
    const store = redisHistory({ connection: { host: '127.0.0.1', port } });
    const [a, b] = [new Pod('a', store), new Pod('b', store)];
    await a.minute(1);
    await redis.stop({ keepData: true });
    for (let minute = 0; minute < 10; minute++) await a.minute(10);
    expect(await a.total()).toBe(101);
    expect(new Set(a.warnings).size).toBe(a.warnings.length);
    expect(a.warnings.join('\n')).toContain('history store "redis" failed');
    await redisAt(port);
    await expect.poll(async () => (await a.minute(100), await b.total()), { interval: 20 }).toBeGreaterThanOrEqual(200);
    await a.history.close(5_000);
    expect(await b.total()).toBe(await a.total());
    await b.history.close(5_000);
  });

  it('a minute whose answer was lost is sent again, and counts once', async () => {
    const redis = await startRedis({ own: true });
    const proxy = await startProxy(redis.port);
    cleanups.push(() => redis.stop(), proxy.close);
    const a = new Pod('a', redisHistory({ connection: { host: '127.0.0.1', port: proxy.port } }));
    const b = new Pod('b', redisHistory({ connection: { host: '127.0.0.1', port: redis.port } }));
    await a.minute(1);
    proxy.loseAnswers();
    await a.minute(10);
    expect([await a.total(), await b.total()]).toEqual([11, 11]);
    expect(proxy.connections()).toBeGreaterThan(1);
    await a.minute(100);
    expect([await a.total(), await b.total()]).toEqual([111, 111]);
    for (const pod of [a, b]) await pod.history.close(5_000);
  });

  it('demoted while its name leads elsewhere: what has waited arrives at the new primary', async () => {
    const [old, next] = [await startRedis({ own: true }), await startRedis({ own: true })];
    const proxy = await startProxy(old.port);
    cleanups.push(
      () => old.stop(),
      () => next.stop(),
      proxy.close,
    );
    const a = new Pod('a', redisHistory({ connection: { host: '127.0.0.1', port: proxy.port } }));
    const b = new Pod('b', redisHistory({ connection: { host: '127.0.0.1', port: next.port } }));
    await a.minute(1);
    proxy.leadTo(next.port);
    const { Redis } = await import('ioredis');
    const admin = new Redis(old.port, '127.0.0.1');
    await admin.replicaof('127.0.0.1', 1);
    admin.disconnect();
    await expect.poll(async () => (await a.minute(10), await b.total()), { interval: 20 }).toBeGreaterThanOrEqual(20);
    for (const pod of [a, b]) await pod.history.close(5_000);
  });

  it.runIf(LONG)('half open: the connection is made anew after 10 s', { timeout: 90_000 }, async () => {
    const redis = await startRedis({ own: true });
    const proxy = await startProxy(redis.port);
    cleanups.push(() => redis.stop(), proxy.close);
    const a = new Pod('a', redisHistory({ connection: { host: '127.0.0.1', port: proxy.port } }));
    const b = new Pod('b', redisHistory({ connection: { host: '127.0.0.1', port: redis.port } }));
    await a.minute(1);
    proxy.hold();
    const arrives = expect.poll(async () => (await a.minute(10), await b.total()), { interval: 20, timeout: 30_000 });
    await arrives.toBeGreaterThanOrEqual(20);
    for (const pod of [a, b]) await pod.history.close(5_000);
  });

  it('not there for a quarter of an hour: each minute that tried it leaves nothing behind', async () => {
    const warnings: Error[] = [];
    const hear = (warning: Error): unknown => warnings.push(warning);
    process.on('warning', hear);
    cleanups.push(() => process.off('warning', hear));
    const pod = new Pod('a', redisHistory({ connection: { host: '127.0.0.1', port: await freePort() } }));
    for (let minute = 0; minute < 15; minute++) await pod.minute(1);
    expect(await pod.total()).toBe(15);
    await pod.history.close(5_000);
    expect(pod.warnings.join('\n')).toContain('history store "redis" failed');
    expect(warnings).toEqual([]);
  });

  it('is no upstream of the application, keys expire, and pods add to one bucket', async () => {
    const port = await freePort();
    await redisAt(port);
    const { Redis } = await import('ioredis');
    const client = new Redis(port, '127.0.0.1', { lazyConnect: true });
    const perf = { history: { store: redisHistory({ connection: client, prefix: 'shop' }) } };
    const [first, second] = [
      await startApp('fastify', { perf, metadata: { controllers: [HelloController] } }),
      await startApp('express', { perf, metadata: { controllers: [HelloController] } }),
    ];
    for (const { url } of [first, second]) for (let i = 0; i < 4; i++) await (await fetch(`${url}/hello`)).text();
    const service = first.app.get(PerfService);
    const range = { from: Date.now() - HOUR_MS, to: Date.now() + 1 };
    await second.requests();
    await second.close();
    const { points } = await service.history(range, { route: 'GET /hello' });
    const upstream = service.snapshot().upstream.filter(({ kind }) => kind === 'redis');
    await first.close();
    const keys = (await client.keys('shop:*')).toSorted();
    const lives = await Promise.all(keys.map((key) => client.ttl(key)));
    client.disconnect();
    expect(points.reduce((sum, { count }) => sum + count, 0)).toBe(8);
    expect(upstream).toEqual([]);
    const buckets = keys.filter((key) => /^shop:3:\{\w\w:\d+\}$/.test(key));
    const lifeOf = (key: string): number => lives[keys.indexOf(key)]!;
    expect(new Set(buckets.map((key) => key.slice(8, 10)))).toEqual(new Set(['1h', '1m', '5m']));
    expect(Math.min(...lives)).toBeGreaterThan(0);
    expect(Math.min(...buckets.map(lifeOf))).toBeGreaterThan(5 * 3_600);
    expect(Math.max(...lives)).toBeLessThanOrEqual(35 * 86_400 + 2 * 3_600);
  });
});
