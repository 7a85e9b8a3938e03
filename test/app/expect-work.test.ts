import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Body, Controller, Get, Inject, Injectable, Post } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { bullmqStore } from '../../src/entries/bullmq.js';
import { expectWork } from '../../src/entries/testing.js';
import { send } from '../../src/entries/testing/send.js';
import {
  Deferrer,
  DeferWork,
  DurableWork,
  PerfService,
  type DeferredWork,
  type PerfModuleOptions,
} from '../../src/index.js';
import { type Adapter, adapterOf, either } from '../fixtures/app.js';
import { buildApp, closeApps } from '../fixtures/build-app.js';
import { connection, queueName } from '../fixtures/redis.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

const DATABASE = 'sql db:5432/shop';
const REDIS = `redis ${connection.host}:${connection.port}`;
let upstream: Server;
let upstreamUrl: string;
let redis: Redis;
beforeAll(async () => {
  upstream = createServer((_request, response) => void response.end('{}'));
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  redis = new Redis({ ...connection, lazyConnect: true });
  await redis.connect();
});
afterAll(async () => {
  redis.disconnect();
  upstream.closeAllConnections();
  await new Promise((resolve) => upstream.close(resolve));
});
afterEach(closeApps);

@DurableWork()
@Injectable()
class SendReceipt implements DeferredWork {
  run(): void {}
}

/** Emits a query at its end, and not for whom. */
class FakePrisma {
  private emit: (event: object) => void = () => {};
  $connect(): void {}
  $disconnect(): void {}
  $on(_event: string, listener: (event: object) => void): void {
    this.emit = listener;
  }
  async query(): Promise<void> {
    await delay(1);
    this.emit({ query: 'SELECT 1', duration: 1 });
  }
}
const prisma = new FakePrisma();

@Controller()
class OrdersController {
  constructor(
    @Inject(PerfService) private readonly perf: PerfService,
    @Inject(Deferrer) private readonly deferrer: Deferrer,
  ) {}
  private query<T>(row: T): Promise<T> {
    return this.perf.timed(DATABASE, () => delay(1, row));
  }
  @Get('orders/7')
  async order() {
    const lines = await this.query([1, 2, 3, 4]);
    return Promise.all(lines.map((line) => this.query({ line })));
  }
  @Get('mixed')
  async mixed() {
    await Promise.all([fetch(upstreamUrl).then((answer) => answer.text()), redis.get('a'), redis.get('b')]);
    return 'x'.repeat(1_000);
  }
  @Get('prisma')
  async lines() {
    for (let i = 0; i < 5; i++) await prisma.query();
  }
  @Get('never')
  never() {
    return new Promise(() => {});
  }
  @Post('durable')
  async durable() {
    await this.deferrer.enqueue(SendReceipt, {});
  }
  @Post('orders')
  @DeferWork(SendReceipt)
  @DeferWork(function alarm() {}, { when: 'error' })
  create(@Body() body: { id: string }) {
    this.deferrer.defer(() => {}, { name: 'audit' });
    return { id: body.id };
  }
}

const start = async (adapter: Adapter, perf: PerfModuleOptions = {}): Promise<INestApplication> => {
  const metadata = { controllers: [OrdersController], providers: [SendReceipt] };
  return (await buildApp(adapterOf(adapter), { perf, metadata })).app;
};
const failure = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'it holds',
    (error: Error) => error.message,
  );

describe.each(either('fastify'))('expectWork() on %s', (adapter) => {
  it('holds where the calls, bytes and work of a request are as allowed', async () => {
    const app = await start(adapter);
    const local = new URL(upstreamUrl).host;
    const seen = await expectWork(
      app,
      { get: '/mixed' },
      {
        upstream: { [REDIS]: { atMost: 2, atLeast: 2 }, [`http ${local}`]: { atMost: 1, atLeast: 1 } },
        blockedMs: { atMost: 5_000 },
        bytes: { atMost: 1_000 },
        deferred: [],
      },
    );
    expect(seen).toMatchObject({ status: 200, bytes: 1_000, deferred: [] });
    const posted = await expectWork(
      app,
      { post: '/orders', body: { id: 'a' } },
      { deferred: ['audit', 'SendReceipt'], status: 201 },
    );
    expect(JSON.parse(posted.body.toString())).toEqual({ id: 'a' });
  });

  it('fails an N+1 with a table that names the target and its calls', async () => {
    const app = await start(adapter);
    const expected = { upstream: { [DATABASE]: { atMost: 3 } }, bytes: { atMost: 200_000 } };
    const message = await failure(expectWork(app, { get: '/orders/7' }, expected));
    expect(message.replaceAll(/[\d.]+ ms/g, 'N ms').split('\n')).toEqual([
      `GET /orders/7: ${DATABASE} 5 calls (expected at most 3 calls)`,
      '',
      '                     expected               seen',
      '  status             below 400              200',
      '  sql db:5432/shop   at most 3 calls        5 calls   <--',
      '  body               at most 200000 bytes   45 bytes',
      '',
      'Calls by target:',
      '  sql db:5432/shop   5 calls   N ms',
    ]);
  });

  it('counts each request by itself when several run at a time', async () => {
    const app = await start(adapter);
    const one = { upstream: { [DATABASE]: { atMost: 5, atLeast: 5 }, [REDIS]: { atMost: 0 } } };
    const other = { upstream: { [DATABASE]: { atMost: 0 }, [REDIS]: { atMost: 2, atLeast: 2 } } };
    const both = [expectWork(app, { get: '/orders/7' }, one), expectWork(app, { get: '/mixed' }, other)];
    await expect(Promise.all(both)).resolves.toHaveLength(2);
  });

  it('fails where calls of a client that knows no request may be too many, and holds where they cannot', async () => {
    const app = await start(adapter);
    app.get(PerfService).watch(prisma, { target: 'postgres shop' });
    const atMost = (calls: number) => ({ upstream: { 'postgres shop': { atMost: calls } } });
    const message = await failure(expectWork(app, { get: '/prisma' }, atMost(3)));
    expect(message).toContain('GET /prisma: postgres shop 0 to 5 calls (expected at most 3 calls)');
    expect(message).toContain("postgres shop: 5 calls without a request may be this one's. perf.timed() places them");
    await expectWork(app, { get: '/prisma' }, atMost(5));
  });

  it('counts durable work that is enqueued', async () => {
    const store = bullmqStore({ connection, queue: queueName() });
    const app = await start(adapter, { defer: { store } });
    await expectWork(app, { post: '/durable' }, { deferred: ['SendReceipt'] });
    const message = await failure(expectWork(app, { post: '/durable' }, { deferred: [] }));
    expect(message).toContain('deferred SendReceipt (expected nothing)');
  });

  it.each([
    [{ get: '/mixed' }, { bytes: { atMost: 999 } }, /body 1000 bytes/],
    [{ get: '/mixed' }, { deferred: ['SendReceipt'] }, /deferred nothing \(expected SendReceipt\)/],
    [{ get: '/nowhere' }, {}, /status 404 \(expected below 400\)/],
    [
      { get: '/mixed' },
      { upstream: { 'redis typo': { atLeast: 1 } } },
      /redis typo 0 calls \(expected at least 1 call\)/,
    ],
  ])('says what does not hold of %o', async (request, expected, message) => {
    expect(await failure(expectWork(await start(adapter), request, expected))).toMatch(message);
  });
});

it('refuses to count what is switched off, and a request without a method', async () => {
  const app = await start('fastify', { upstream: false, eventLoop: false });
  expect(await failure(expectWork(app, { get: '/mixed' }, { upstream: {} }))).toContain('PERF_ERR_OFF');
  expect(await failure(expectWork(app, { get: '/mixed' }, { blockedMs: { atMost: 1 } }))).toContain('PERF_ERR_OFF');
  expect(await failure(expectWork(app, {}, {}))).toContain('PERF_ERR_OPTION');
  expect(await failure(expectWork(app, undefined as never))).toContain('PERF_ERR_OPTION');
});

it('refuses keys that would compare nothing, and ends with a message where no answer comes', async () => {
  const app = await start('fastify');
  const refused = (request: object, expected: object): Promise<string> => failure(expectWork(app, request, expected));
  expect(await refused({ get: '/mixed' }, { upstreams: {} })).toContain('`expected.upstreams` is not an option');
  expect(await refused({ get: '/mixed' }, { upstream: { [REDIS]: { atmost: 1 } } })).toContain('atMost');
  expect(await refused({ get: '/mixed' }, { bytes: 200 })).toContain('`expected.bytes` must be an object, got `200`');
  expect(await refused({ get: '/mixed', header: {} }, {})).toContain('`header` is none');
  await expectWork(app, { get: '/mixed' });
  expect(await failure(send(app.getHttpServer() as Server, { get: '/never' }, 'id', 100))).toBe(
    'expectWork(): GET /never was not answered to its end within 0.1 s.',
  );
});
