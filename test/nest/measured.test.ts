import { Controller, Get, Inject, Injectable } from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import { Redis } from 'ioredis';
import { lastValueFrom, Subject } from 'rxjs';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { Measured, PerfInterceptor, PerfService, type WorkRecord } from '../../src/index.js';
import { settle } from '../../src/entries/testing.js';
import {
  Interval,
  MessagesController,
  OrdersResolver,
  PricesService,
  ReportsJob,
  startMeasured,
  work,
  type MeasuredApp,
} from '../fixtures/measured-work.js';
import { connection } from '../fixtures/redis.js';
import { until } from '../fixtures/until.js';

let app: MeasuredApp | null = null;
beforeAll(async () => {
  work.redis = new Redis({ ...connection, lazyConnect: true });
  await work.redis.connect();
});
afterAll(() => {
  work.redis?.disconnect();
  work.redis = null;
});
afterEach(async () => {
  await app?.close();
  app = null;
});
const REDIS = `redis ${connection.host}:${connection.port}`;
const records = async (count: number): Promise<WorkRecord[]> => {
  const all = (): WorkRecord[] => app!.sink.records.filter((record) => record.kind === 'work');
  await until(`${count} records of work`, async () => {
    await settle(app!.app);
    return all().length >= count;
  });
  return all();
};
const callsOf = ({ upstream }: Pick<WorkRecord, 'upstream'>): number =>
  upstream!.find(({ target }) => target === REDIS)?.calls ?? 0;

it('measures each entry point as a scope of its own, with its own calls', async () => {
  app = await startMeasured();
  await app.app.get(ReportsJob).rebuild();
  await app.app.get(PricesService).refresh();
  await app.app.get(OrdersResolver).order();
  await app.send();
  await lastValueFrom(app.client.emit('changed', {}), { defaultValue: null });
  await app.bid();
  await app.queue.add('mail', {});
  const seen = await records(7);
  expect(seen.map(({ type, name }) => `${type} ${name}`).toSorted()).toEqual([
    'cron ReportsJob.rebuild',
    'event MessagesController.changed',
    'graphql OrdersResolver.order',
    'message MessagesController.price',
    'method PricesService.refresh',
    'queue MailProcessor.process',
    'socket BidsGateway.bid',
  ]);
  for (const record of seen) {
    expect(record).toMatchObject({ kind: 'work', outcome: 'completed', blockedMs: 0, overlapped: false });
    expect([record.name, callsOf(record)]).toEqual([record.name, 3]);
    const { upstreamMs, idleMs, busyMs } = record.time!;
    expect(upstreamMs + idleMs + busyMs).toBeCloseTo(record.durationMs, 3);
  }
  const rows = app.app.get(PerfService).snapshot().work;
  expect(rows.map(({ name, count, failed, running }) => ({ name, count, failed, running }))).toContainEqual({
    name: 'MailProcessor.process',
    count: 1,
    failed: 0,
    running: 0,
  });
  expect(rows.every(({ lastAt }) => Math.abs(Date.now() - lastAt) < 60_000)).toBe(true);
});

it('passes on what is returned and thrown, as the same object', async () => {
  app = await startMeasured();
  const prices = app.app.get(PricesService);
  const error = new Error('no prices');
  expect(await prices.refresh()).toBe('done');
  expect(await prices.fails(error).catch((caught: unknown) => caught)).toBe(error);
  expect(() => prices.throws(error)).toThrow(error);
  const seen = await records(3);
  expect(seen.map(({ outcome }) => outcome).toSorted()).toEqual(['completed', 'failed', 'failed']);
});

/** As Knex and Mongoose have them: runs when somebody awaits it. */
class Query {
  where(): this {
    return this;
  }
  // eslint-disable-next-line unicorn/no-thenable -- query builders are
  then<T>(resolve: (value: string) => T): Promise<T> {
    return work.redis!.get('a').then(() => resolve('rows'));
  }
}

it('returns a query that the application may chain as it is, and measures one that Nest awaits', async () => {
  const [query, changes] = [new Query(), new Subject<number>()];
  @Injectable()
  class Repository {
    @Measured()
    query() {
      return query;
    }
    @Measured()
    changes() {
      return changes;
    }
    @Interval(60_000)
    @Measured()
    job() {
      return query;
    }
  }
  app = await startMeasured({}, { providers: [Repository] });
  const repository = app.app.get(Repository);
  expect([repository.query(), repository.query().where(), repository.changes()]).toEqual([query, query, changes]);
  expect(repository.query()).toBe(query);
  expect(await repository.job()).toBe('rows');
  const seen = await records(5);
  const calls = seen.map(
    (record) => `${record.type} ${record.name} ${record.upstream?.length === 0 ? 0 : callsOf(record)}`,
  );
  expect(calls.toSorted()).toEqual([
    'cron Repository.job 1',
    'method Repository.changes 0',
    ...Array.from({ length: 3 }, () => 'method Repository.query 0'),
  ]);
});

it('counts a part of an HTTP request for itself and for the request', async () => {
  app = await startMeasured();
  expect((await fetch(`${app.url}/orders`)).status).toBe(200);
  const [part] = await records(1);
  const [request] = await app.requests();
  expect([part!.name, callsOf(part!)]).toEqual(['OrdersResolver.order', 3]);
  expect([request!.handler, callsOf(request!)]).toEqual(['MessagesController.http', 3]);
});

it('says that a run began while another one was still running', async () => {
  let finish!: () => void;
  const finished = new Promise<void>((resolve) => (finish = resolve));
  @Injectable()
  class SlowJob {
    @Interval(60_000)
    @Measured()
    run() {
      return finished;
    }
  }
  app = await startMeasured({}, { providers: [SlowJob] });
  const job = app.app.get(SlowJob);
  const runs = [job.run(), job.run()];
  const rows = app.app.get(PerfService).snapshot().work;
  expect(rows.find(({ name }) => name === 'SlowJob.run')).toMatchObject({ running: 2, count: 0, overlapped: 1 });
  finish();
  await Promise.all(runs);
  const seen = (await records(2)).toSorted((a, b) => a.startedAt - b.startedAt);
  expect(seen.map(({ overlapped }) => overlapped)).toEqual([false, true]);
});

it('finds a job that runs no more', async () => {
  @Injectable()
  class Job {
    @Interval(60_000)
    @Measured()
    run(): void {}
  }
  app = await startMeasured({}, { providers: [Job] });
  for (let i = 0; i < 3; i++) app.app.get(Job).run();
  const finding = (): unknown =>
    app!.app
      .get(PerfService)
      .snapshot()
      .findings.find(({ kind }) => kind === 'missed-runs');
  await until('it is missed', () => finding() !== undefined);
  expect(finding()).toMatchObject({
    route: null,
    text: expect.stringMatching(/^Job\.run runs every 0\.0 s/) as string,
  });
});

it('measures a method that calls itself once', async () => {
  @Injectable()
  class Tree {
    @Measured()
    async walk(depth: number): Promise<void> {
      if (depth > 0) await this.walk(depth - 1);
    }
  }
  app = await startMeasured({}, { providers: [Tree] });
  await app.app.get(Tree).walk(3);
  await app.app.get(Tree).walk(0);
  expect(await records(2)).toHaveLength(2);
});

@Controller()
class PlainController {
  @MessagePattern('plain')
  plain() {
    return 'plain';
  }
  @MessagePattern('both')
  @Measured()
  both() {
    return 'both';
  }
  @Get('plain')
  http() {
    return 'http';
  }
}

it('with `work: true` measures messages without a decorator, HTTP not twice, and a decorated one once', async () => {
  app = await startMeasured({ work: true }, { controllers: [PlainController] });
  await lastValueFrom(app.client.send('plain', {}));
  await lastValueFrom(app.client.send('both', {}));
  await fetch(`${app.url}/plain`);
  const seen = await records(2);
  // A record that waits for a block comes after later ones.
  expect(seen.map(({ type, name }) => `${type} ${name}`).toSorted()).toEqual([
    'message PlainController.both',
    'message PlainController.plain',
  ]);
  expect(await app.requests()).toHaveLength(1);
});

@Injectable()
class QuotesService {
  @Measured()
  quote() {
    return Promise.resolve('quote');
  }
}

/** As decorators of other packages wrap: a function without a name. */
const wrapped: MethodDecorator = (_target, _key, descriptor) => {
  const method = descriptor.value as unknown as (...given: unknown[]) => unknown;
  (descriptor as PropertyDescriptor).value = function (this: unknown, ...given: unknown[]) {
    return method.apply(this, given);
  };
};

@Controller()
class QuotesController {
  constructor(@Inject(QuotesService) private readonly quotes: QuotesService) {}
  @MessagePattern('quote')
  @wrapped
  quote() {
    return this.quotes.quote();
  }
  @MessagePattern('bid')
  @wrapped
  @Measured()
  bid() {
    return 'bid';
  }
}

it('with `work: true` measures a handler and the method of the same name that it calls, under their own names', async () => {
  app = await startMeasured({ work: true }, { controllers: [QuotesController], providers: [QuotesService] });
  await lastValueFrom(app.client.send('quote', {}));
  await lastValueFrom(app.client.send('bid', {}));
  const seen = await records(3);
  // A record that waits for a block comes after later ones.
  expect(seen.map(({ type, name }) => `${type} ${name}`).toSorted()).toEqual([
    'message QuotesController.bid',
    'message QuotesController.quote',
    'method QuotesService.quote',
  ]);
});

it('does nothing where the module is switched off, and refuses a class that has nothing to measure', async () => {
  app = await startMeasured({ enabled: false });
  expect(await app.app.get(ReportsJob).rebuild()).toBe('done');
  expect(app.app.get(PerfService).snapshot().work).toEqual([]);
  expect(() => Measured()(class Nothing {})).toThrow('PERF_ERR_DECORATOR');
  expect(Reflect.getMetadata('microservices:pattern', MessagesController.prototype.price)).toEqual(['price']);
  expect(PerfInterceptor).toBeDefined();
});
