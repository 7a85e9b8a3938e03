import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PerfService, type RequestRecord, type UpstreamSnapshot } from '../../../src/index.js';
import { either, startApp, type TestApp } from '../../fixtures/app.js';
import * as clients from '../../fixtures/clients.js';
import { databases, OrdersController } from '../../fixtures/postgres.controller.js';
import { until } from '../../fixtures/until.js';

let postgres: clients.Postgres;
let pool: clients.PgPool;
let client: clients.PgClient;
let knex: clients.Knex;
let dataSource: clients.DataSource;
let target = '';

beforeAll(async () => {
  postgres = await clients.startPostgres();
  const { host, port, user, password, database } = postgres;
  const connection = { host, port, user, password, database };
  target = `postgres ${host}:${port}/${database}`;
  // Small pools: requests wait for each other's connections.
  pool = new clients.pg.Pool({ ...connection, max: 3 });
  client = new clients.pg.Client(connection);
  await client.connect();
  knex = clients.knex({ client: 'pg', connection, pool: { min: 0, max: 3 } });
  dataSource = await new clients.DataSource({ type: 'postgres', ...connection, username: user }).initialize();
  Object.assign(databases, { pool, client, knex, dataSource });
  await pool.query('CREATE TABLE orders (id int PRIMARY KEY, total int)');
  await pool.query('INSERT INTO orders SELECT id, id * 10 FROM generate_series(1, 100) AS id');
});
afterAll(async () => {
  await Promise.all([pool.end(), client.end(), knex.destroy(), dataSource.destroy()]);
  await postgres.stop();
});

describe.each(either('fastify'))('calls to a real PostgreSQL, on %s, of', (adapter) => {
  let running: TestApp;
  beforeEach(async () => {
    running = await startApp(adapter, { metadata: { controllers: [OrdersController] } });
    await (await fetch(`${running.url}/none`)).text();
  });
  afterEach(() => running.close());

  const answerOf = async (path: string): Promise<unknown> => (await fetch(`${running.url}/${path}`)).json();
  const recordOf = async (path: string): Promise<RequestRecord> => {
    await answerOf(path);
    return (await running.requests()).at(-1)!;
  };
  const asked = (): UpstreamSnapshot =>
    running.app
      .get(PerfService)
      .snapshot()
      .upstream.find((one) => one.target === target)!;
  const expectCalls = (record: RequestRecord, calls: number, errors: number): void => {
    expect(record.upstream).toMatchObject([{ target, kind: 'sql', calls, errors }]);
    expect(record.time!.unplacedCalls).toBe(0);
    expect(asked()).toMatchObject({ calls, errors, inFlight: 0 });
  };

  it('a pg Pool count once for it, and answer as ever', async () => {
    expect(await answerOf('pool/7')).toEqual({ total: 70 });
    expectCalls((await running.requests()).at(-1)!, 2, 0);
  });

  it('a pg Pool last as long as the query', async () => {
    const record = await recordOf('slow');
    expect(record.upstream![0]!.wallMs).toBeGreaterThan(48);
    expect(record.time!.upstreamMs).toBeGreaterThan(48);
  });

  it('a client that a pg Pool lends count with their errors', async () => {
    expectCalls(await recordOf('lent'), 3, 1);
  });

  it('a pg Client with a callback count once', async () => {
    expect(await answerOf('callback')).toEqual({ one: 1 });
    expectCalls((await running.requests()).at(-1)!, 1, 0);
  });

  it('a stream and a `Query` answer as ever, and are not measured', async () => {
    expect(await answerOf('stream')).toEqual({ count: 100 });
    expect(await answerOf('query-object')).toEqual({ failed: true });
    for (const { upstream } of await running.requests()) expect(upstream).toEqual([]);
  });

  it('knex count with their errors', async () => {
    expect(await answerOf('knex/7')).toEqual({ id: 7, total: 70 });
    expectCalls((await running.requests()).at(-1)!, 2, 1);
  });

  it('a pg Pool that are made when somebody awaits them are of who does', async () => {
    expect(await answerOf('thenable')).toEqual([{ '?column?': 1 }]);
    expectCalls((await running.requests()).at(-1)!, 2, 0);
  });

  it('TypeORM in a transaction are of its request', async () => {
    expectCalls(await recordOf('typeorm-transaction'), 5, 0);
  });

  it('TypeORM count with their errors', async () => {
    expect(await answerOf('typeorm/7')).toEqual({ total: 70 });
    expectCalls((await running.requests()).at(-1)!, 2, 1);
  });

  it('75 users at once, who wait for three connections, are each of their own request', async () => {
    const paths = ['of/pool', 'of/knex', 'of/typeorm', 'none', 'thenable'];
    await Promise.all(Array.from({ length: 75 }, (_, i) => answerOf(paths[i % 5]!)));
    const records = (await running.requests()).slice(1);
    const calls = (route: string) =>
      records.filter((one) => one.route === route).map(({ upstream }) => upstream!.map((use) => use.calls));
    for (const [route, count] of [
      ['/of/pool', 2],
      ['/of/knex', 1],
      ['/of/typeorm', 1],
      ['/thenable', 2],
    ] as const)
      expect(calls(route)).toEqual(Array.from({ length: 15 }, () => [count]));
    expect(calls('/none')).toEqual(Array.from({ length: 15 }, () => []));
    expect(asked()).toMatchObject({ calls: 15 * 6, inFlight: 0 });
  });

  it('a query that nobody catches are still an unhandled rejection', async () => {
    const unhandled: unknown[] = [];
    const before = process.rawListeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection');
    process.on('unhandledRejection', (reason) => unhandled.push(reason));
    try {
      void pool.query('SELECT nothing');
      await expect.poll(() => unhandled).toHaveLength(1);
    } finally {
      process.removeAllListeners('unhandledRejection');
      for (const listener of before) process.on('unhandledRejection', listener as () => void);
    }
  });
});

it('gives a query in a callback that has waited for a connection to who has waited, not to who gives it back', async () => {
  const running = await startApp('fastify', { metadata: { controllers: [OrdersController] } });
  const get = async (path: string) => (await fetch(`${running.url}/${path}`)).text();
  const holding = get('holds');
  await until('all connections held', () => pool.totalCount - pool.idleCount === 3);
  await Promise.all([holding, get('waits')]);
  const records = await running.requests();
  const { upstream } = running.app.get(PerfService).snapshot();
  await running.close();
  expect(records.find(({ route }) => route === '/holds')!.upstream).toEqual([]);
  expect(records.find(({ route }) => route === '/waits')!.upstream).toMatchObject([{ target, calls: 1 }]);
  expect(upstream.find((one) => one.target === target)).toMatchObject({ calls: 1, inFlight: 0 });
});

it('places the calls of transactions by the context store', async () => {
  const running = await startApp('fastify', { metadata: { controllers: [OrdersController] } });
  await (await fetch(`${running.url}/transactions`)).text();
  // Knex emits no event for its BEGIN and COMMIT; a watched pool sees those of TypeORM.
  expect((await running.requests()).at(-1)).toMatchObject({
    upstream: [{ target, calls: 4 }],
    time: { unplacedCalls: 0 },
  });
  await running.close();
});

it('leaves nothing on the clients once the last application has closed', async () => {
  const heard = () => [
    ['connect', 'query'].map((name) => Object.hasOwn(pool, name)),
    Object.hasOwn(client, 'query'),
    ['acquire', 'remove'].map((event) => pool.listenerCount(event)),
    knex.listenerCount('start'),
  ];
  const before = heard();
  const [first, second] = await Promise.all(
    ['', ''].map(() => startApp('fastify', { metadata: { controllers: [OrdersController] } })),
  );
  expect(heard()).toEqual([[true, false], true, [1, 1], 1 + Number(before[3])]);
  await first!.close();
  await (await fetch(`${second!.url}/pool/1`)).text();
  expect((await second!.requests()).at(-1)!.upstream).toMatchObject([{ calls: 2 }]);
  await second!.close();
  expect(heard()).toEqual(before);
  expect(before.slice(0, 2)).toEqual([[false, false], false]);
});
