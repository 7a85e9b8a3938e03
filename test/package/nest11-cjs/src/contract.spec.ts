// A contract of counts under Jest: fetch, Redis, PostgreSQL and `timed()`, and a planted N+1. check/jest.cjs starts the servers.
import 'reflect-metadata';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Controller, Get, Inject, type INestApplication, type OnModuleInit } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { PerfModule, PerfService } from 'nestjs-perf';
import { expectWork } from 'nestjs-perf/testing';

interface Pool {
  query(sql: string, values?: readonly unknown[]): Promise<{ rows: unknown[] }>;
  end(): Promise<void>;
}
const { Pool } = require('pg') as { Pool: new (options: object) => Pool };
const [redisPort, pgPort] = [Number(process.env['REDIS_PORT']), Number(process.env['PG_PORT'])];
const REDIS = `redis 127.0.0.1:${redisPort}`;
const POSTGRES = `postgres 127.0.0.1:${pgPort}/postgres`;

const redis = new Redis({ host: '127.0.0.1', port: redisPort, lazyConnect: true });
const pool = new Pool({ host: '127.0.0.1', port: pgPort, user: 'postgres', database: 'postgres', max: 1 });
let prices: Server;

@Controller('orders')
class OrdersController implements OnModuleInit {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  onModuleInit(): void {
    this.perf.watch(pool);
  }

  @Get('joined')
  async joined(): Promise<unknown> {
    const { port } = prices.address() as AddressInfo;
    await redis.get('customer');
    const { rows } = await pool.query('SELECT 1 AS line UNION SELECT 2');
    await fetch(`http://127.0.0.1:${port}/`).then((answer) => answer.text());
    return this.perf.timed('s3 invoices', async () => rows);
  }

  /** An N+1: one query for the order, and one for each of its lines. */
  @Get('planted')
  async planted(): Promise<unknown> {
    const { rows } = await pool.query('SELECT n FROM generate_series(1, 12) AS n');
    return Promise.all(rows.map(() => pool.query('SELECT $1::int AS line', [1])));
  }
}

const LIMIT_MS = 60_000;

describe('a contract', () => {
  let app: INestApplication;
  beforeAll(async () => {
    prices = createServer((_request, response) => void response.end('{}')).listen(0, '127.0.0.1');
    await Promise.all([once(prices, 'listening'), redis.connect(), pool.query('SELECT 1')]);
    const testing = await Test.createTestingModule({
      imports: [PerfModule.forRoot({ sinks: [] })],
      controllers: [OrdersController],
    }).compile();
    app = testing.createNestApplication({ logger: false });
  }, LIMIT_MS);
  afterAll(async () => {
    await app.close();
    redis.disconnect();
    await pool.end();
    prices.closeAllConnections();
    await new Promise((resolve) => prices.close(resolve));
  }, LIMIT_MS);

  it(
    'counts calls of fetch, Redis, PostgreSQL and timed()',
    async () => {
      const one = { atMost: 1, atLeast: 1 };
      const { port } = prices.address() as AddressInfo;
      const upstream = { [REDIS]: one, [POSTGRES]: one, [`http 127.0.0.1:${port}`]: one, 's3 invoices': one };
      await expectWork(app, { get: '/orders/joined' }, { upstream, deferred: [], bytes: { atMost: 100 } });
    },
    LIMIT_MS,
  );

  it(
    'fails an N+1 with its target and its calls',
    async () => {
      const broken = expectWork(app, { get: '/orders/planted' }, { upstream: { [POSTGRES]: { atMost: 2 } } });
      await expect(broken).rejects.toThrow(`GET /orders/planted: ${POSTGRES} 13 calls (expected at most 2 calls)`);
    },
    LIMIT_MS,
  );
});
