import { errorMonitor, once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Controller, Get, Inject, type OnModuleInit } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PerfService, type RequestRecord } from '../../../src/index.js';
import { either, startApp, type TestApp } from '../../fixtures/app.js';
import * as clients from '../../fixtures/clients.js';
import { uncaughtDuring } from '../../fixtures/uncaught.js';
import { until } from '../../fixtures/until.js';

let mysqld: clients.MySqlServer;
let connection = {};
let target = '';
let pool: clients.MySqlPool;
let watchedPool: clients.MySqlPool;
let client: clients.MySqlClient;

beforeAll(async () => {
  mysqld = clients.mysqlServer();
  mysqld.listen(0, '127.0.0.1');
  await once(mysqld._server, 'listening');
  const { port } = mysqld._server.address() as AddressInfo;
  // A busy machine may take its time.
  connection = { host: '127.0.0.1', port, user: 'root', database: 'shop', connectTimeout: 0 };
  target = `mysql 127.0.0.1:${port}/shop`;
  pool = clients.mysql2.createPool({ ...connection, connectionLimit: 1 });
  watchedPool = clients.mysql2.createPool({ ...connection, connectionLimit: 2 });
  client = clients.mysql2.createConnection(connection);
  await once(client, 'connect');
});
afterAll(async () => {
  for (const one of [pool, watchedPool]) await one.promise().end();
  client.destroy();
  mysqld.close();
});

@Controller()
class ClientsController implements OnModuleInit {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  onModuleInit() {
    for (const one of [watchedPool, watchedPool.promise(), client.promise()]) this.perf.watch(one);
  }

  @Get('unwatched')
  async unwatched() {
    await pool.promise().query('SELECT sleep(5)');
    await pool
      .promise()
      .query('SELECT * FROM nothing')
      .catch(() => null);
    const lent = await pool.promise().getConnection();
    await lent.query('SELECT 2');
    lent.release();
    return {};
  }

  @Get('watched')
  async watched() {
    const one = watchedPool.promise();
    await Promise.all([1, 2, 3, 4].map(() => one.query('SELECT sleep(20)')));
    await one.query('SELECT * FROM nothing').catch(() => null);
    return {};
  }

  @Get('callback')
  callback() {
    return new Promise((resolve) => {
      client.query('SELECT ?', [1], (_, rows) => resolve(rows));
    });
  }

  @Get('events')
  async events() {
    const rows: unknown[] = [];
    const command = client.query('SELECT 1').on('result', (row) => rows.push(row));
    await once(command, 'end');
    const failing = client.query('SELECT * FROM nothing');
    const [error] = await once(failing, 'error').catch((caught: Error) => [caught]);
    return { rows, error: error.message };
  }
}

describe.each(either('express'))('calls of the real mysql2 to its own server, on %s,', (adapter) => {
  let running: TestApp;
  beforeEach(async () => {
    running = await startApp(adapter, { metadata: { controllers: [ClientsController] } });
  });
  afterEach(() => running.close());
  const answerOf = async (path: string): Promise<any> => (await fetch(`${running.url}/${path}`)).json();
  const recordOf = async (path: string): Promise<RequestRecord> => {
    await answerOf(path);
    return (await running.requests()).at(-1)!;
  };

  it('count without perf.watch() where a pool lends the connection', async () => {
    const record = await recordOf('unwatched');
    expect(record.upstream).toMatchObject([{ target, kind: 'sql', calls: 3, errors: 1 }]);
    expect(record.time).toMatchObject({ unplacedCalls: 0 });
  });

  it('that wait for a connection are of who has asked, not of who gave it back', async () => {
    await Promise.all(Array.from({ length: 12 }, () => answerOf('unwatched')));
    const calls = (await running.requests()).map(({ upstream }) => upstream!.map((use) => use.calls));
    expect(calls).toEqual(Array.from({ length: 12 }, () => [3]));
  });

  it('of a watched pool count once, and so does its wait', async () => {
    const record = await recordOf('watched');
    expect(record.upstream).toMatchObject([{ target, calls: 5, errors: 1 }]);
    const row = running.app
      .get(PerfService)
      .snapshot()
      .upstream.find((one) => one.target === target)!;
    expect(row).toMatchObject({
      calls: 5,
      errors: 1,
      inFlight: 0,
      pool: { max: 2, total: 2, waiting: 0, acquired: 5 },
    });
    expect(row.pool!.waitMs.max).toBeGreaterThan(15);
  });

  it('of a watched connection count with a callback, and answer as ever with events', async () => {
    expect(await answerOf('callback')).toEqual([{ id: 1 }]);
    expect(await answerOf('events')).toEqual({ rows: [{ id: 1 }], error: 'Table nothing does not exist' });
    const [callback, events] = await running.requests();
    expect(callback!.upstream).toMatchObject([{ target, calls: 1, errors: 0 }]);
    expect(events!.upstream).toEqual([]);
  });
});

/** What becomes of a failing query without a callback: mysql2 ends it, fails the connection, or throws. */
async function fateOf(
  source: 'connection' | 'pool' | 'lent',
  watch: (one: clients.MySqlClient) => void,
): Promise<string[]> {
  const own = source === 'connection' ? null : clients.mysql2.createPool({ ...connection, connectionLimit: 1 });
  const made = own ?? clients.mysql2.createConnection(connection);
  watch(made);
  const asked: clients.MySqlClient =
    source === 'lent' ? await new Promise((lent) => own!.getConnection((_, one) => lent(one))) : made;
  const fate: string[] = [];
  const caught = await uncaughtDuring(async () => {
    asked.once(errorMonitor, ({ message }: Error) => fate.push(`connection: ${message}`));
    asked.query('SELECT * FROM nothing').once('end', () => fate.push('end'));
    await until('its fate', () => fate.length > 0);
  });
  if (own === null) made.destroy();
  else own.end();
  return [...fate, ...caught.map((error) => `uncaught: ${(error as Error).message}`)];
}
const fates = async (watch: (one: clients.MySqlClient) => void) => [
  await fateOf('connection', watch),
  await fateOf('pool', watch),
  await fateOf('lent', watch),
];

it("mysql2's own fate of a query without a callback that fails is the same with us and without", async () => {
  const message = 'Table nothing does not exist';
  const bare = await fates(() => {});
  expect(bare).toEqual([[`connection: ${message}`, `uncaught: ${message}`], ['end'], [`connection: ${message}`]]);
  const running = await startApp('fastify');
  const unwatched = await fates(() => {});
  const watched = await fates((one) => running.app.get(PerfService).watch(one));
  await running.close();
  expect([unwatched, watched]).toEqual([bare, bare]);
});

it('leaves the connections of a pool as they were once the application has closed', async () => {
  const own = clients.mysql2.createPool({ ...connection, connectionLimit: 1 });
  const running = await startApp('fastify');
  running.app.get(PerfService).watch(own);
  const lent = await new Promise<clients.MySqlClient & { release(): void }>((done) => {
    own.getConnection((_, one) => done(one));
  });
  const changed = () => [
    Object.hasOwn(own, 'getConnection'),
    Object.hasOwn(lent, 'query'),
    Object.hasOwn(lent, 'execute'),
  ];
  expect(changed()).toEqual([true, true, true]);
  await running.close();
  expect(changed()).toEqual([false, false, false]);
  lent.release();
  await own.promise().end();
});
