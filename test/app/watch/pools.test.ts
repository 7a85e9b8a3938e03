import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Inject, type OnModuleInit, Param } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PerfService, type RequestRecord } from '../../../src/index.js';
import { either, startApp, type TestApp } from '../../fixtures/app.js';
import { gate } from '../../fixtures/cached-data.js';
import * as clients from '../../fixtures/clients.js';
import { until } from '../../fixtures/until.js';

let mysqld: clients.MySqlServer;
let pool: clients.MySqlPool;
let knex: clients.Knex;
let postgres: Server;
let pgPool: clients.PgPool;
/** Milliseconds that requests themselves saw their waits take. */
let seen: number[] = [];
/** Connections go back once it is open. */
let opened = gate();
/** PostgreSQL's `AuthenticationOk` and `ReadyForQuery`: its connections are lent without a query. */
const READY = Buffer.from('5200000008000000005a0000000549', 'hex');

beforeAll(async () => {
  mysqld = clients.mysqlServer();
  mysqld.listen(0, '127.0.0.1');
  await once(mysqld._server, 'listening');
  const { port } = mysqld._server.address() as AddressInfo;
  const connection = { host: '127.0.0.1', port, user: 'root', database: 'shop', connectTimeout: 0 };
  pool = clients.mysql2.createPool({ ...connection, connectionLimit: 10 });
  knex = clients.knex({ client: 'mysql2', connection, pool: { min: 0, max: 10 } });
  postgres = createServer((socket) => socket.once('data', () => socket.write(READY)).resume());
  await once(postgres.listen(0, '127.0.0.1'), 'listening');
  const { port: postgresPort } = postgres.address() as AddressInfo;
  pgPool = new clients.pg.Pool({ host: '127.0.0.1', port: postgresPort, user: 'postgres', max: 10 });
});
afterAll(async () => {
  await Promise.all([pool.promise().end(), knex.destroy(), pgPool.end()]);
  postgres.close();
  mysqld.close();
});

const timed = async <T>(work: Promise<T>): Promise<T> => {
  const startedMs = performance.now();
  const result = await work;
  seen.push(performance.now() - startedMs);
  return result;
};
/** Each takes a connection, in which no call is under way. */
const ways: Record<string, () => Promise<unknown>> = {
  async mysql2() {
    const one = await timed(pool.promise().getConnection());
    await opened.passed;
    await delay(20);
    one.release();
  },
  async pg() {
    const one = await timed(pgPool.connect());
    await opened.passed;
    await delay(20);
    one.release();
  },
  async knex() {
    const one = await timed(knex.client.acquireConnection());
    await opened.passed;
    await delay(20);
    await knex.client.releaseConnection(one);
  },
};

@Controller()
class PoolController implements OnModuleInit {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  onModuleInit() {
    this.perf.watch(pool);
    this.perf.watch(pgPool);
    this.perf.watch(knex, { target: 'mysql knex' });
  }

  @Get('takes/:way')
  async takes(@Param('way') way: string) {
    await ways[way]!();
    return {};
  }

  @Get('checkout')
  async checkout() {
    await pool.promise().query('SELECT sleep(20)');
    return {};
  }

  @Get('basket')
  async basket() {
    await Promise.all(Array.from({ length: 4 }, () => pool.promise().query('SELECT sleep(20)')));
    return {};
  }

  @Get('waits-and-calls')
  async waitsAndCalls() {
    const waits = pool.promise().query('SELECT 1');
    await this.perf.timed('s3 uploads', () => waits);
    return {};
  }
}

describe.each(either('express'))('a pool of 10 connections, on %s,', (adapter) => {
  let running: TestApp;
  beforeEach(async () => {
    seen = [];
    opened = gate();
    running = await startApp(adapter, { metadata: { controllers: [PoolController] } });
  });
  afterEach(() => running.close());
  const ask = async (count: number, path: string, waits: number): Promise<RequestRecord[]> => {
    const waiting = () => snapshot().upstream.reduce((sum, one) => sum + (one.pool?.waiting ?? 0), 0);
    const answers = Promise.all(
      Array.from({ length: count }, async () => (await fetch(`${running.url}/${path}`)).text()),
    );
    await until('requests that wait', () => waiting() === waits);
    await delay(50);
    opened.open();
    await answers;
    return running.requests();
  };
  const snapshot = () => running.app.get(PerfService).snapshot();

  it.each(Object.keys(ways))('of %s under 50 requests: the wait is what the requests see', async (way) => {
    const records = await ask(50, `takes/${way}`, 40);
    const waits = records.map(({ time }) => time!.poolWaitMs);
    const sum = (values: readonly number[]): number => values.reduce((total, ms) => total + ms, 0);
    expect(waits).toHaveLength(50);
    // The last ten wait for four others.
    expect(Math.max(...waits)).toBeGreaterThan(110);
    expect(Math.abs(sum(waits) - sum(seen))).toBeLessThan(0.05 * sum(seen));
    for (const { time, durationMs, upstream } of records) {
      expect(time!.upstreamMs + time!.poolWaitMs + time!.idleMs + time!.busyMs).toBeCloseTo(durationMs, 6);
      expect(upstream).toEqual([]);
    }
    const { pool: row } = snapshot().upstream.find((one) => one.pool !== null && one.pool.acquired > 0)!;
    expect(row).toMatchObject({ max: 10, total: 10, idle: 10, waiting: 0, acquired: 50 });
    expect(row!.waitMs.mean).toBeCloseTo(sum(waits) / 50, 1);
    const { time } = snapshot().routes.find(({ route }) => route === '/takes/:way')!;
    expect(time!.poolWaitMs).toBeCloseTo(sum(waits) / 50, 3);
  });

  it('is a finding of a route that waits, beside what its queries take', async () => {
    const held = Array.from({ length: 10 }, () => ways['mysql2']!());
    const records = await ask(20, 'checkout', 20);
    await Promise.all(held);
    for (const { upstream, time } of records) expect(upstream![0]!.maxMs).toBeLessThanOrEqual(time!.upstreamMs + 0.001);
    expect(snapshot().findings).toEqual([
      {
        kind: 'pool-wait',
        route: 'GET /checkout',
        text: expect.stringMatching(
          /^GET \/checkout waits \d+ ms for one of 10 connections; its queries take \d+(\.\d)? ms$/,
        ) as string,
      },
    ]);
  });

  it('is a finding beside the time that queries take side by side, not their sum', async () => {
    const held = Array.from({ length: 10 }, () => ways['mysql2']!());
    const records = await ask(10, 'basket', 40);
    await Promise.all(held);
    const upstreamMs = records.reduce((sum, { time }) => sum + time!.upstreamMs, 0) / records.length;
    const { text } = snapshot().findings[0]!;
    expect(text).toMatch(/^GET \/basket waits .* its queries take/);
    // At least 10 ms, so the text has whole ones.
    expect(Math.abs(Number(/take (\d+) ms$/.exec(text)?.[1]) - upstreamMs)).toBeLessThanOrEqual(0.5);
  });

  it('counts a wait beside a call of the same request as the call', async () => {
    const held = Array.from({ length: 10 }, () => ways['mysql2']!());
    const records = await ask(5, 'waits-and-calls', 5);
    await Promise.all(held);
    for (const { time } of records) {
      expect(time!.upstreamMs).toBeGreaterThan(45);
      expect(time!.poolWaitMs).toBeLessThan(0.5 * time!.upstreamMs);
    }
  });
});
