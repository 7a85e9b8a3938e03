import { createServer, get, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { Controller, Get, Param } from '@nestjs/common';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { PerfService, type RequestRecord } from '../../src/index.js';
import { startDelayProxy } from '../../bench/deferred/delay-proxy.mjs';
import { adapters, byTurns, startApp, type TestApp } from '../fixtures/app.js';

/** What it exports is not typed: that tree may not be installed where types are checked. */
const client = createRequire(new URL('../clients/package.json', import.meta.url)) as (name: string) => any;
const undici = client('undici');
const HELD_MS = 20;

let server: Server;
let upstream = '';
let redis: Redis;
let nodeRedis: any;
let proxy: { port: number; stop(): void };
/** How long the callers themselves saw their calls take, by request. */
const seen = new Map<string, number>();

beforeAll(async () => {
  server = createServer((request, response) => {
    const ms = Number(/\d+/.exec(request.url!)![0]);
    setTimeout(() => response.writeHead(request.url!.startsWith('/fail') ? 503 : 200).end('answer'), ms);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  proxy = await startDelayProxy(Number(new URL(inject('redisUrl')).port), HELD_MS);
  redis = new Redis(proxy.port, '127.0.0.1');
  nodeRedis = client('redis').createClient({ url: `redis://127.0.0.1:${proxy.port}` });
  await Promise.all([redis.ping(), nodeRedis.connect()]);
});
afterAll(async () => {
  server.close();
  redis.disconnect();
  nodeRedis.destroy();
  proxy.stop();
});

const ways: Record<string, (path: string) => Promise<unknown>> = {
  fetch: async (path) => (await fetch(upstream + path)).text(),
  undici: async (path) => (await undici.request(upstream + path)).body.text(),
  http: (path) =>
    new Promise((resolve, reject) => {
      get(upstream + path, (response) => void response.resume().once('end', () => resolve(null))).once('error', reject);
    }),
  ioredis: () => redis.get('accuracy'),
  redis: () => nodeRedis.get('accuracy'),
  'a transaction of redis': () => nodeRedis.multi().get('accuracy').get('accuracy').exec(),
};

@Controller()
class CallsController {
  @Get('sequential/:way/:id')
  async sequential(@Param('way') way: string, @Param('id') id: string) {
    const startedMs = performance.now();
    for (let i = 0; i < 3; i++) await ways[way]!('/40');
    seen.set(id, performance.now() - startedMs);
    return {};
  }

  @Get('parallel/:way/:id')
  async parallel(@Param('way') way: string, @Param('id') id: string) {
    const startedMs = performance.now();
    await Promise.all(Array.from({ length: 3 }, () => ways[way]!('/40')));
    seen.set(id, performance.now() - startedMs);
    return {};
  }

  @Get('retries/:way/:id')
  async retries(@Param('way') way: string, @Param('id') id: string) {
    const startedMs = performance.now();
    for (const path of ['/fail/20', '/fail/20', '/40']) await ways[way]!(path);
    seen.set(id, performance.now() - startedMs);
    return {};
  }

  @Get('innocent')
  innocent() {
    return {};
  }
}

describe.each(adapters)('the truth of upstream calls, on %s', (adapter) => {
  let running: TestApp;
  beforeEach(async () => {
    running = await startApp(adapter, { metadata: { controllers: [CallsController] } });
  });
  afterEach(() => running.close());

  const ask = async (path: string): Promise<unknown> => (await fetch(`${running.url}/${path}`)).text();
  const recordOf = async (path: string): Promise<RequestRecord> => {
    await ask(path);
    return (await running.requests()).at(-1)!;
  };
  /** Against what the caller saw in this very process, so that a loaded machine is late for both; nothing can be faster than the delay. */
  const expectTruth = ({ time }: RequestRecord, id: string, leastMs: number): void => {
    const { upstreamMs } = time!;
    expect(upstreamMs).toBeGreaterThan(leastMs - 3);
    expect(upstreamMs).toBeLessThanOrEqual(seen.get(id)! + 3);
    expect(upstreamMs).toBeGreaterThan(0.8 * seen.get(id)! - 10);
  };

  it.each(byTurns(adapter, Object.keys(ways)))('%s: one after the other, and at the same time', async (way) => {
    await ask(`sequential/${way}/warm`);
    const one = await recordOf(`sequential/${way}/one`);
    expect(one.upstream).toMatchObject([{ calls: 3, errors: 0 }]);
    expectTruth(one, 'one', 3 * 40);
    const same = await recordOf(`parallel/${way}/same`);
    expect(same.upstream).toMatchObject([{ calls: 3, errors: 0 }]);
    expectTruth(same, 'same', 40);
  });

  it.each(byTurns(adapter, ['fetch', 'undici', 'http']))('%s: errors and retries', async (way) => {
    await ask(`sequential/${way}/warm`);
    const record = await recordOf(`retries/${way}/retried`);
    expect(record.upstream).toMatchObject([{ calls: 3, errors: 2 }]);
    expectTruth(record, 'retried', 80);
  });

  it('of sixty users at once, with calls outside of requests: exact for each, none on an innocent', async () => {
    const names = Object.keys(ways);
    const users = Array.from({ length: 60 }, (_, i) => names[i % names.length]!);
    await Promise.all([
      ...users.map((way, i) => ask(`sequential/${way}/user${i}`)),
      ...Array.from({ length: 20 }, () => ask('innocent')),
      ...names.map((way) => ways[way]!('/30')),
    ]);
    const records = await running.requests();
    const callsOf = (route: string) =>
      records.filter((one) => one.route === route).map(({ upstream: uses }) => uses!.map(({ calls }) => calls));
    expect(callsOf('/sequential/:way/:id')).toEqual(users.map(() => [3]));
    expect(callsOf('/innocent')).toEqual(Array.from({ length: 20 }, () => []));
    const { upstream: targets } = running.app.get(PerfService).snapshot();
    expect(targets.every(({ inFlight }) => inFlight === 0)).toBe(true);
  });
});
