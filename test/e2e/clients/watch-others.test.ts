import { EventEmitter } from 'node:events';
import { Controller, Get, Module } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { PerfError, PerfService, type RequestRecord } from '../../../src/index.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';
import { client } from '../../fixtures/postgres.js';

const { MongoClient, CommandStartedEvent, CommandSucceededEvent, CommandFailedEvent } = client('mongodb');
const { DataSource } = client('typeorm');

/** No server is on npm: the driver's client and its event objects, told as its connections tell them. */
const mongo = new MongoClient('mongodb://127.0.0.1:1', { monitorCommands: true });
const connection = { address: 'db:27017', id: 1, generation: 0 };
let requestId = 0;
async function command(name: string, failure?: Error): Promise<void> {
  const message = { requestId: ++requestId, databaseName: 'shop', query: { [name]: 1 } };
  mongo.emit('commandStarted', new CommandStartedEvent(connection, message, null));
  await new Promise((later) => setTimeout(later, 20));
  if (failure === undefined)
    mongo.emit('commandSucceeded', new CommandSucceededEvent(connection, message, {}, 0, null));
  else mongo.emit('commandFailed', new CommandFailedEvent(connection, message, failure, 0, null));
}

/** Its engine is downloaded where it is used: what it documents of `$on('query')`. */
const prisma = Object.assign(new EventEmitter(), {
  $connect: async () => {},
  $on: (event: string, hear: () => void) => void prisma.on(event, hear),
});

@Controller()
class CommandsController {
  @Get('mongo')
  async mongo() {
    await command('hello');
    await command('find');
    await command('insert', new Error('no'));
    return {};
  }

  @Get('prisma')
  prisma() {
    prisma.emit('query', { timestamp: new Date(), query: 'SELECT 1', params: '[]', duration: 12, target: 'quaint' });
    return {};
  }
}
@Module({ controllers: [CommandsController] })
class CommandsModule {}

describe.each(adapters)('watched clients without a server in the tests, on %s', (adapter) => {
  let running: TestApp;
  let perf: PerfService;
  beforeEach(async () => {
    running = await startApp(adapter, { metadata: { imports: [CommandsModule] } });
    perf = running.app.get(PerfService);
  });
  afterEach(() => running.close());
  const recordOf = async (path: string): Promise<RequestRecord> => {
    await (await fetch(`${running.url}/${path}`)).text();
    return (await running.requests()).at(-1)!;
  };

  it('mongodb: commands by the driver’s own events, without those of its connections', async () => {
    perf.watch(mongo);
    const record = await recordOf('mongo');
    expect(record.upstream).toMatchObject([{ target: 'mongodb db:27017/shop', kind: 'other', calls: 2, errors: 1 }]);
    expect(record.upstream![0]!.maxMs).toBeGreaterThan(15);
    await running.close();
    expect(mongo.listenerCount('commandStarted')).toBe(0);
  });

  it('Prisma: for its target, and for nobody, since its events tell of a query that is over', async () => {
    perf.watch(prisma, { target: 'prisma shop' });
    const record = await recordOf('prisma');
    expect(record).toMatchObject({ upstream: [], time: { unplacedCalls: 1 } });
    const row = perf.snapshot().upstream.find(({ target }) => target === 'prisma shop');
    expect(row).toMatchObject({ kind: 'sql', calls: 1, inFlight: 0, durationMs: { mean: 12 } });
  });

  it('ioredis, redis and mysql2 are heard already: watching changes nothing', async () => {
    const { Redis } = await import('ioredis');
    const redis = new Redis(inject('redisUrl'));
    const nodeRedis = client('redis').createClient({ url: inject('redisUrl') });
    const mysql = client('mysql2/promise').createPool({ host: '127.0.0.1', port: 1 });
    for (const heard of [redis, nodeRedis, mysql, mysql.pool]) perf.watch(heard);
    await mysql.end();
    await redis.quit();
  });

  it('what does not tell of its calls is refused, with what to do', () => {
    const messageOf = (given: unknown): string => {
      try {
        perf.watch(given as object);
      } catch (error) {
        if (error instanceof PerfError) return `${error.code} ${error.message}`;
        throw error;
      }
      throw new Error('It was not refused');
    };
    expect(messageOf(new MongoClient('mongodb://user:secret@127.0.0.1:1'))).toMatch(
      /^PERF_ERR_WATCH .*monitorCommands: true/,
    );
    const early = new DataSource({ type: 'postgres', url: 'postgres://127.0.0.1:1/x' });
    expect(messageOf(early)).toMatch(/^PERF_ERR_WATCH .*dataSource\.initialize\(\)/);
    class ElasticClient {
      password = 'secret';
    }
    for (const given of [new ElasticClient(), null, 'postgres://user:secret@db']) {
      expect(messageOf(given)).toMatch(/^PERF_ERR_WATCH .*pg Client.*MongoClient.*perf\.timed/);
      expect(messageOf(given)).not.toContain('secret');
    }
    expect(messageOf(new ElasticClient())).toContain('ElasticClient');
  });

  it('off is off: with `upstream: false` nothing is put on a client', async () => {
    const off = await startApp(adapter, { perf: { upstream: false } });
    off.app.get(PerfService).watch(mongo);
    expect(mongo.listenerCount('commandStarted')).toBe(0);
    await off.close();
  });
});
