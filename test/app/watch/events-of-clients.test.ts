import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { Controller, Get, Inject, type OnModuleInit } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PerfService, type RequestRecord, type UpstreamSnapshot } from '../../../src/index.js';
import { either, startApp, type TestApp } from '../../fixtures/app.js';
import * as clients from '../../fixtures/clients.js';
import { mongoServer } from '../../fixtures/mongo-server.js';

/** As Prisma's client looks from outside: its engine cannot be installed here. */
class PrismaLike {
  private readonly heard: ((event: object) => void)[] = [];
  $connect = () => Promise.resolve();
  $disconnect = () => Promise.resolve();
  $on(_: 'query', hear: (event: object) => void) {
    this.heard.push(hear);
  }
  query() {
    for (const hear of this.heard) hear({ timestamp: new Date(), query: 'SELECT 1', params: '[]', duration: 7 });
  }
}

let mongod: Server;
let mysqld: clients.MySqlServer;
let mongo: clients.MongoClient;
let knex: clients.Knex;
const prisma = new PrismaLike();
const closing: (() => unknown)[] = [];

beforeAll(async () => {
  mongod = mongoServer().listen(0, '127.0.0.1');
  await once(mongod, 'listening');
  const url = `mongodb://127.0.0.1:${(mongod.address() as AddressInfo).port}`;
  mongo = new clients.mongodb.MongoClient(url, { monitorCommands: true, serverApi: '1' });
  mysqld = clients.mysqlServer();
  mysqld.listen(0, '127.0.0.1');
  await once(mysqld._server, 'listening');
  const { port } = mysqld._server.address() as AddressInfo;
  const connection = { host: '127.0.0.1', port, user: 'root', database: 'shop', connectTimeout: 0 };
  knex = clients.knex({ client: 'mysql2', connection });
  // It asks for the server's version first.
  await knex('orders');
  closing.push(
    () => mongo.close(),
    () => mongod.close(),
    () => knex.destroy(),
    () => mysqld.close(),
  );
});
afterAll(async () => {
  for (const close of closing) await close();
});

@Controller()
class ClientsController implements OnModuleInit {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}

  onModuleInit() {
    for (const one of [mongo, knex]) {
      this.perf.watch(one);
      this.perf.watch(one);
    }
    this.perf.watch(prisma, { target: 'postgres shop' });
  }

  @Get('none')
  none() {
    return {};
  }

  @Get('mongo')
  async fromMongo() {
    const shop = mongo.db('shop');
    await Promise.all([shop.command({ ping: 1 }), shop.command({ ping: 1 })]);
    await shop.command({ fails: 1 }).catch(() => null);
    return {};
  }

  @Get('knex')
  async fromKnex() {
    await Promise.all([1, 2, 3].map((id) => knex('orders').where('id', id)));
    return {};
  }

  @Get('prisma')
  fromPrisma() {
    prisma.query();
    return {};
  }
}

describe.each(either('express'))('calls, on %s, of', (adapter) => {
  let running: TestApp;
  beforeEach(async () => {
    running = await startApp(adapter, { metadata: { controllers: [ClientsController] } });
    await (await fetch(`${running.url}/none`)).text();
  });
  afterEach(() => running.close());

  const recordOf = async (path: string): Promise<RequestRecord> => {
    await (await fetch(`${running.url}/${path}`)).text();
    return (await running.requests()).at(-1)!;
  };
  const asked = (name: RegExp): UpstreamSnapshot[] =>
    running.app
      .get(PerfService)
      .snapshot()
      .upstream.filter(({ target }) => name.test(target));

  it('the real mongodb driver (to a server that speaks its protocol) count by database, with their errors', async () => {
    const record = await recordOf('mongo');
    expect(record.upstream).toMatchObject([{ kind: 'other', calls: 3, errors: 1 }]);
    expect(record.upstream![0]!.target).toMatch(/^mongodb 127\.0\.0\.1:\d+\/shop$/);
    expect(record.time!.unplacedCalls).toBe(0);
    expect(asked(/^mongodb/)).toMatchObject([{ calls: 3, inFlight: 0 }]);
  });

  it("knex through the real mysql2 (to the driver's own server), count once, and so does the wait for its pool", async () => {
    const record = await recordOf('knex');
    expect(record.upstream).toMatchObject([{ kind: 'sql', calls: 3, errors: 0 }]);
    expect(asked(/^mysql 127\.0\.0\.1:\d+\/shop$/)).toMatchObject([
      { calls: 3, inFlight: 0, pool: { max: 10, waiting: 0, acquired: 3 } },
    ]);
  });

  it('Prisma (a client that tells as it does; there is no engine here) count for their target, and on no request', async () => {
    const record = await recordOf('prisma');
    expect(record).toMatchObject({ upstream: [], time: { unplacedCalls: 1 } });
    expect(asked(/^postgres shop$/)).toMatchObject([{ calls: 1, inFlight: 0, routes: [] }]);
    expect(asked(/^postgres shop$/)[0]!.durationMs.max).toBeCloseTo(7, 0);
  });
});

describe('perf.watch()', () => {
  let running: TestApp;
  beforeEach(async () => {
    running = await startApp('fastify');
  });
  afterEach(() => running.close());
  const watch = (client: unknown, options?: object): void =>
    running.app.get(PerfService).watch(client as object, options);

  it('says what to do with a client that it cannot hear', () => {
    const deaf = new clients.mongodb.MongoClient('mongodb://127.0.0.1', {});
    expect(() => watch(deaf)).toThrow(/^PERF_ERR_WATCH: .*monitorCommands: true/);
    const early = new clients.DataSource({ type: 'postgres' });
    expect(() => watch(early)).toThrow(/^PERF_ERR_WATCH: .*await dataSource\.initialize\(\)/);
    const noLog = Object.assign(new PrismaLike(), { _engineConfig: { logQueries: undefined } });
    for (const silent of [noLog, { $connect() {}, $disconnect() {}, $extends() {} }])
      expect(() => watch(silent)).toThrow(/^PERF_ERR_WATCH: .*emit: 'event', level: 'query'/);
    expect(() => watch(clients.knex({ client: 'better-sqlite3' }))).toThrow(
      /^PERF_ERR_WATCH: .*runs each query on the event loop/,
    );
    expect(() => watch({ sendCommand() {}, connect() {}, on() {} })).toThrow(/^PERF_ERR_WATCH: .*ioredis from 5\.11/);
    expect(() => watch({ initialize() {}, createQueryRunner() {}, isInitialized: true, driver: {} })).toThrow(
      /^PERF_ERR_WATCH: .*driver has no pool/,
    );
    for (const other of [{}, null, 'pool', { query() {} }])
      expect(() => watch(other)).toThrow(/^PERF_ERR_WATCH: .*perf\.timed\(\)/);
    const mikroOrm = { em: {}, config: {}, schema: {} };
    expect(() => watch(mikroOrm)).toThrow(/^PERF_ERR_WATCH: .*MikroORM its `getConnection\(\)\.getNativeClient\(\)`/);
  });

  it('refuses a target that is no name', () => {
    expect(() => watch(prisma, { target: '' })).toThrow(/^PERF_ERR_OPTION: `perf\.watch options\.target`/);
    expect(() => watch(prisma, { name: 'shop' })).toThrow(/^PERF_ERR_OPTION: /);
  });

  it('hears nothing more once the application has closed', async () => {
    const events = ['commandStarted', 'commandSucceeded', 'commandFailed'];
    const listeners = () => events.map((event) => mongo.listenerCount(event));
    watch(mongo);
    expect(listeners()).toEqual([1, 1, 1]);
    await running.app.close();
    expect(listeners()).toEqual([0, 0, 0]);
    watch(mongo);
    expect(listeners()).toEqual([0, 0, 0]);
  });
});
