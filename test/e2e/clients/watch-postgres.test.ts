import { Controller, Get, Inject } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PerfService, type RequestRecord } from '../../../src/index.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { client, startPostgres, type Postgres } from '../../fixtures/postgres.js';

const { Pool, Client } = client('pg');
const createKnex = client('knex');
const { DataSource } = client('typeorm');
const SLEEP = 'select pg_sleep(0.02)';

let postgres: Postgres;
let pool: any;
let single: any;
let knex: any;
let dataSource: any;
beforeAll(async () => {
  postgres = await startPostgres();
  const { url: connectionString } = postgres;
  pool = new Pool({ connectionString, max: 2 });
  single = new Client({ connectionString });
  await single.connect();
  knex = createKnex({ client: 'pg', connection: connectionString, pool: { min: 0, max: 3 } });
  dataSource = await new DataSource({ type: 'postgres', url: connectionString }).initialize();
  // Connections are made before anybody is watched.
  await Promise.all([pool.query('select 1'), knex.raw('select 1'), dataSource.query('select 1')]);
});
afterAll(async () => {
  await Promise.all([pool.end(), single.end(), knex.destroy(), dataSource.destroy()]);
  await postgres.stop();
});

@Controller()
class QueriesController {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  @Get('pool')
  async fromPool() {
    await pool.query(SLEEP);
    await pool.query({ text: 'select $1::int as x', values: [1] });
    const borrowed = await pool.connect();
    await borrowed.query('select 2');
    await borrowed.query('select 3');
    borrowed.release();
    return {};
  }

  @Get('callbacks')
  async callbacks() {
    await new Promise<void>((done) => pool.query('select 1', () => done()));
    await new Promise<void>((done, failed) =>
      pool.connect((error: unknown, borrowed: any, release: () => void) => {
        if (error) return failed(error);
        borrowed.query('select 2', () => {
          release();
          done();
        });
      }),
    );
    return {};
  }

  @Get('client')
  async fromClient() {
    await single.query(SLEEP);
    await single.query('select nothing from nowhere').catch(() => null);
    return {};
  }

  @Get('knex')
  async fromKnex() {
    await knex.raw('select pg_sleep(?)', [0.02]);
    await knex.select(knex.raw('? as x', [7]));
    await knex('nowhere')
      .select()
      .catch(() => null);
    return {};
  }

  @Get('typeorm')
  async fromTypeorm() {
    await dataSource.query('select pg_sleep($1)', [0.02]);
    await dataSource.query('select 4');
    await dataSource.query('select nothing from nowhere').catch(() => null);
    return {};
  }

  @Get('sleep')
  async sleep() {
    await pool.query(SLEEP);
    return {};
  }

  @Get('silent')
  async silent() {
    await this.perf.timed('s3 uploads', async () => {});
    return {};
  }
}

describe.each(adapters)('watched clients of PostgreSQL, on %s', (adapter) => {
  let running: TestApp;
  let perf: PerfService;
  beforeEach(async () => {
    running = await startApp(adapter, { metadata: { controllers: [QueriesController] } });
    perf = running.app.get(PerfService);
  });
  afterEach(() => running.close());

  const recordOf = async (path: string): Promise<RequestRecord> => {
    await (await fetch(`${running.url}/${path}`)).text();
    return (await running.requests()).at(-1)!;
  };
  const target = () => `postgres 127.0.0.1:${postgres.port}/postgres`;
  /** Asked twice: what is known of a route may begin with its first request. */
  const expectCalls = async (path: string, calls: number, errors: number): Promise<void> => {
    await recordOf(path);
    const record = await recordOf(path);
    expect(record.upstream).toMatchObject([{ target: target(), kind: 'sql', calls, errors }]);
    expect(record.time!.unplacedCalls).toBe(0);
    const row = perf.snapshot().upstream.find((one) => one.target === target());
    expect(row).toMatchObject({ calls: 2 * calls, errors: 2 * errors, inFlight: 0 });
    expect(JSON.stringify(perf.snapshot())).not.toContain('secret-password');
  };

  it('a pool: its own queries, and those of a client that is borrowed', async () => {
    perf.watch(pool);
    await expectCalls('pool', 4, 0);
  });

  it('a pool with callbacks', async () => {
    perf.watch(pool);
    await expectCalls('callbacks', 2, 0);
  });

  it('a client', async () => {
    perf.watch(single);
    await expectCalls('client', 2, 1);
  });

  it('knex', async () => {
    perf.watch(knex);
    await expectCalls('knex', 3, 1);
  });

  it('TypeORM, and the pool below it, as one call', async () => {
    perf.watch(dataSource);
    perf.watch(dataSource.driver.master);
    await expectCalls('typeorm', 3, 1);
  });

  it('one that is watched twice counts once, under the name that it was given', async () => {
    perf.watch(single, { target: 'shop' });
    perf.watch(single);
    const record = await recordOf('client');
    expect(record.upstream).toMatchObject([{ target: 'shop', calls: 2 }]);
    expect(record.upstream![0]!.maxMs).toBeGreaterThan(18);
  });

  it('calls that wait for a connection are of who asked, not of who set it free', async () => {
    perf.watch(pool);
    await Promise.all([
      ...Array.from({ length: 20 }, () => fetch(`${running.url}/sleep`)),
      ...Array.from({ length: 20 }, () => fetch(`${running.url}/callbacks`)),
      ...Array.from({ length: 20 }, () => fetch(`${running.url}/silent`)),
    ]);
    const records = await running.requests();
    const callsOf = (route: string) =>
      records.filter((one) => one.route === route).map(({ upstream }) => upstream!.map(({ calls }) => calls));
    expect(callsOf('/sleep')).toEqual(Array.from({ length: 20 }, () => [1]));
    expect(callsOf('/callbacks')).toEqual(Array.from({ length: 20 }, () => [2]));
    const innocent = records.filter((one) => one.route === '/silent').flatMap(({ upstream }) => upstream!);
    expect(innocent.map((use) => use.target)).toEqual(Array.from({ length: 20 }, () => 's3 uploads'));
  });

  it('are left as they were when the application has closed', async () => {
    const left = (): unknown[] => [
      ...['acquire', 'remove'].map((event) => pool.listenerCount(event)),
      ...['query', 'query-response', 'query-error'].map((event) => knex.listenerCount(event)),
      dataSource.subscribers.length,
      ...['query', 'connect'].map((name) => Object.hasOwn(pool, name)),
      Object.hasOwn(single, 'query'),
    ];
    const before = left();
    for (const one of [pool, single, knex, dataSource]) perf.watch(one);
    await recordOf('pool');
    left().forEach((now, i) => expect(now).not.toBe(before[i]));
    await running.close();
    expect(left()).toEqual(before);
    const borrowed = await pool.connect();
    expect(Object.hasOwn(borrowed, 'query')).toBe(false);
    borrowed.release();
    expect((await pool.query('select 5 as x')).rows).toEqual([{ x: 5 }]);
  });
});
