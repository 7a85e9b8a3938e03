import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { AddressInfo } from 'node:net';
import { Controller, Get, Inject, Param } from '@nestjs/common';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { PerfService, type RequestRecord, type UpstreamSnapshot } from '../../src/index.js';
import { freePort } from '../../scripts/redis.mjs';
import { either, startApp, type TestApp } from '../fixtures/app.js';

/** Answers after the milliseconds in its path; `/500` fails. */
let server: Server;
let upstream = '';
/** Nobody listens there. */
let closed = '';
let redis: Redis;

beforeAll(async () => {
  server = createServer((request, response) => {
    const ms = Number(/\d+/.exec(request.url!)![0]);
    const status = request.url!.startsWith('/fail') ? 503 : 200;
    if (request.url!.startsWith('/moved/')) {
      response.writeHead(302, { location: `/${ms}` }).end('moved '.repeat(40_000));
      return;
    }
    if (request.url!.startsWith('/body/')) {
      response.writeHead(200).write('body '.repeat(400_000));
      return;
    }
    if (request.url!.startsWith('/hint/')) response.writeProcessing();
    setTimeout(() => response.writeHead(status).end('answer'), ms);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  closed = `http://127.0.0.1:${await freePort()}`;
  redis = new Redis(inject('redisUrl'));
  await redis.ping();
});
afterAll(async () => {
  server.close();
  server.closeAllConnections();
  await redis.quit();
});

const spin = (ms: number): void => {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
};
const byNodeHttp = (url: string): Promise<void> =>
  new Promise((resolve, reject) => {
    get(url, (response) => void response.resume().once('end', resolve)).once('error', reject);
  });

@Controller()
class CallsController {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  @Get('none')
  none() {
    return {};
  }

  @Get('fetch/:ms')
  async fetched(@Param('ms') ms: string) {
    await (await fetch(`${upstream}/${ms}?key=secret`)).text();
    return {};
  }

  @Get('hinted')
  async hinted() {
    await (await fetch(`${upstream}/hint/50`)).text();
    return {};
  }

  @Get('moved')
  async moved() {
    await (await fetch(`${upstream}/moved/1`)).text();
    await delay(200);
    return {};
  }

  @Get('unread')
  async unread() {
    const { status } = await fetch(`${upstream}/body/1`);
    await delay(200);
    return { status };
  }

  @Get('cancelled')
  async cancelled() {
    const response = await fetch(`${upstream}/body/1`);
    await response.body!.cancel();
    await delay(200);
    return {};
  }

  /** As a client of node:http that wants the status only. */
  @Get('dropped')
  async dropped() {
    const request = get(`${upstream}/body/1`);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.destroy();
    await delay(200);
    return {};
  }

  @Get('failing')
  async failing() {
    await (await fetch(`${upstream}/fail/5`)).text();
    await fetch(`${closed}/`).catch(() => null);
    await fetch(`${upstream}/5000`, { signal: AbortSignal.timeout(30) }).catch(() => null);
    // The client hears of it before undici tells.
    await delay(20);
    return {};
  }

  @Get('parallel')
  async parallel() {
    await Promise.all([80, 60, 40].map(async (ms) => (await fetch(`${upstream}/${ms}`)).text()));
    await delay(40);
    spin(30);
    return {};
  }

  @Get('redis')
  async fromRedis() {
    await redis.set('upstream-test', 'x');
    for (let i = 0; i < 2; i++) await redis.get('upstream-test');
    return {};
  }

  @Get('orders')
  async orders() {
    for (let id = 0; id < 12; id++) await redis.get(`order:${id}`);
    return {};
  }

  @Get('node-http')
  async nodeHttp() {
    await byNodeHttp(`${upstream}/40`);
    return {};
  }

  @Get('timed')
  async timed() {
    await this.perf.timed('s3 uploads', () => delay(40));
    await this.perf.timed('s3 uploads', () => Promise.reject(new Error('no'))).catch(() => null);
    return this.perf.timed('s3 uploads', () => ({}));
  }

  @Get('busy')
  async busy() {
    const answer = fetch(`${upstream}/20`);
    await delay(10);
    spin(60);
    await (await answer).text();
    return {};
  }
}

describe.each(either('fastify'))('upstream calls, on %s', (adapter) => {
  let running: TestApp;
  beforeEach(async () => {
    running = await startApp(adapter, { metadata: { controllers: [CallsController] } });
    await (await fetch(`${running.url}/none`)).text();
  });
  afterEach(() => running.close());

  const recordOf = async (path: string): Promise<RequestRecord> => {
    await (await fetch(`${running.url}/${path}`)).text();
    return (await running.requests()).at(-1)!;
  };
  /** The row of the server that is asked; the tests' own client is there too. */
  const asked = (): UpstreamSnapshot => {
    const { upstream: targets } = running.app.get(PerfService).snapshot();
    return targets.find(({ target }) => target === `http ${new URL(upstream).host}`)!;
  };
  const expectSum = ({ time, durationMs }: RequestRecord): void =>
    expect(time!.upstreamMs + time!.poolWaitMs + time!.idleMs + time!.busyMs).toBeCloseTo(durationMs, 6);

  it('are none of a request that makes none', async () => {
    const record = await recordOf('none');
    expectSum(record);
    expect(record).toMatchObject({ upstream: [], time: { upstreamMs: 0, unplacedCalls: 0 } });
  });

  it('of `fetch` are of their request and of their host, and hold neither path nor query', async () => {
    const record = await recordOf('fetch/50');
    expectSum(record);
    expect(record.upstream).toMatchObject([
      { target: `http ${new URL(upstream).host}`, kind: 'http', calls: 1, errors: 0 },
    ]);
    expect(record.upstream![0]!.wallMs).toBeGreaterThan(45);
    expect(record.time!.upstreamMs).toBeGreaterThan(45);
    expect(record.time!.unplacedCalls).toBe(0);
    expect(JSON.stringify(running.app.get(PerfService).snapshot())).not.toContain('secret');
  });

  it('do not end with an interim answer', async () => {
    const record = await recordOf('hinted');
    expect(record.upstream).toMatchObject([{ calls: 1, errors: 0 }]);
    expect(record.upstream![0]!.wallMs).toBeGreaterThan(45);
  });

  it('end where `fetch` follows a redirect and leaves its body unread', async () => {
    const { idleMs, busyMs } = (await recordOf('moved')).time!;
    // The handler waits for 200 ms afterwards; a busy machine may leave the loop no idle moment.
    expect(idleMs + busyMs).toBeGreaterThan(150);
    expect(asked()).toMatchObject({ calls: 2, errors: 0, inFlight: 0 });
  });

  it.each(['unread', 'cancelled', 'dropped'])('end with their head where the body is %s', async (how) => {
    const record = await recordOf(how);
    expect(record.upstream).toMatchObject([{ calls: 1, errors: 0 }]);
    expect(record.time!.upstreamMs).toBeLessThan(record.durationMs - 100);
    expect(asked()).toMatchObject({ calls: 1, errors: 0, inFlight: 0 });
  });

  it('that answer 500 or more, refuse or are given up are errors', async () => {
    const record = await recordOf('failing');
    const errors = Object.fromEntries(
      record.upstream!.map(({ target, calls, errors: failed }) => [target, [calls, failed]]),
    );
    expect(errors).toEqual({ [`http ${new URL(upstream).host}`]: [2, 2], [`http ${new URL(closed).host}`]: [1, 1] });
  });

  it('at the same time are one stretch of waiting; the rest is idle or busy', async () => {
    const record = await recordOf('parallel');
    expectSum(record);
    const { upstreamMs, idleMs, busyMs } = record.time!;
    expect(record.upstream![0]).toMatchObject({ calls: 3 });
    expect(record.upstream![0]!.wallMs).toBeGreaterThan(170);
    expect(upstreamMs).toBeGreaterThan(75);
    expect(upstreamMs).toBeLessThan(0.8 * record.upstream![0]!.wallMs);
    // 40 ms of waiting and 30 of work; a busy machine may leave the loop no idle moment.
    expect(idleMs + busyMs).toBeGreaterThan(65);
    expect(busyMs).toBeGreaterThan(25);
  });

  it('tell how long the loop was busy while they waited', async () => {
    const record = await recordOf('busy');
    expect(record.time!.upstreamBusyMs).toBeGreaterThan(50);
  });

  it('of ioredis are counted by server', async () => {
    const record = await recordOf('redis');
    expect(record.upstream).toMatchObject([{ kind: 'redis', calls: 3, errors: 0 }]);
    expect(record.upstream![0]!.target).toMatch(/^redis (127\.0\.0\.1|localhost|::1):\d+$/);
    expect(record.time!.unplacedCalls).toBe(0);
  });

  it('of node:http count once, for their target at least', async () => {
    const record = await recordOf('node-http');
    const target = asked();
    expect(target).toMatchObject({ calls: 1, inFlight: 0 });
    expect(target.durationMs.max).toBeGreaterThan(35);
    expect(record.upstream!.length + record.time!.unplacedCalls).toBe(1);
  });

  it('that no client tells of are timed by hand', async () => {
    const record = await recordOf('timed');
    expect(record.upstream).toMatchObject([{ target: 's3 uploads', kind: 'other', calls: 3, errors: 1 }]);
    expect(record.upstream![0]!.maxMs).toBeGreaterThan(35);
  });

  it('of sixty users at once are each of their own request', async () => {
    const waits = Array.from({ length: 60 }, (_, i) => 20 + i * 5);
    await Promise.all(waits.map(async (ms) => (await fetch(`${running.url}/fetch/${ms}`)).text()));
    const records = (await running.requests()).filter(({ route }) => route === '/fetch/:ms');
    expect(records).toHaveLength(60);
    expect(records.map(({ upstream: uses }) => uses!.map(({ calls }) => calls))).toEqual(waits.map(() => [1]));
    expect(records.every(({ time }) => time!.unplacedCalls === 0)).toBe(true);
  });

  it('that are the same many times in a request are a finding', async () => {
    // It may have to connect.
    await recordOf('redis');
    const findings = async () => {
      for (let i = 0; i < 5; i++) await recordOf('orders');
      return running.app.get(PerfService).snapshot().findings;
    };
    // One pause of a busy machine can be longer than all calls of the first five.
    await expect.poll(findings).toEqual([
      {
        kind: 'repeated-calls',
        route: 'GET /orders',
        text: expect.stringMatching(
          /^GET \/orders calls redis \S+:\d+ 12 times a request \(N\+1\), which is \d+ % of its time: make one call for all, or cache the answers$/,
        ),
      },
    ]);
  });

  it('are summed up by route and by target', async () => {
    await recordOf('fetch/20');
    await recordOf('fetch/20');
    const snapshot = running.app.get(PerfService).snapshot();
    const row = snapshot.routes.find(({ route }) => route === '/fetch/:ms')!;
    expect(row.upstream).toMatchObject([{ target: `http ${new URL(upstream).host}`, callsPerRequest: 1 }]);
    expect(row.time!.upstreamMs).toBeGreaterThan(15);
    expect(asked().routes).toMatchObject([{ route: 'GET /fetch/:ms', calls: 2 }]);
  });
});
