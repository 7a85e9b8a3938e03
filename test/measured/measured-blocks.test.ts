import { Redis } from 'ioredis';
import { lastValueFrom } from 'rxjs';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { PerfService, type BlockRecord, type WorkRecord } from '../../src/index.js';
import { expectWork, settle } from '../../src/entries/testing.js';
import { EVENT_LOOP } from '../../src/event-loop/event-loop.feature.js';
import {
  OrdersResolver,
  PricesService,
  ReportsJob,
  startMeasured,
  work,
  type MeasuredApp,
} from '../fixtures/measured-work.js';
import { connection } from '../fixtures/redis.js';
import { until } from '../fixtures/until.js';

/** Two thirds of a block of this length are sampled on any machine that gives the process a core. */
const BLOCK_MS = 300;
let app: MeasuredApp;
beforeAll(async () => {
  work.redis = new Redis({ ...connection, lazyConnect: true });
  work.blockMs = BLOCK_MS;
  await work.redis.connect();
});
afterAll(() => {
  work.redis?.disconnect();
  [work.redis, work.blockMs] = [null, 0];
});
afterEach(() => app.close());

const entries: [name: string, type: string, run: () => Promise<unknown>][] = [
  ['ReportsJob.rebuild', 'CRON', () => app.app.get(ReportsJob).rebuild()],
  ['PricesService.refresh', 'METHOD', () => app.app.get(PricesService).refresh()],
  ['OrdersResolver.order', 'GRAPHQL', () => app.app.get(OrdersResolver).order()],
  ['MessagesController.price', 'MESSAGE', () => app.send()],
  ['MessagesController.changed', 'EVENT', () => lastValueFrom(app.client.emit('changed', {}), { defaultValue: null })],
  ['BidsGateway.bid', 'SOCKET', () => app.bid()],
  ['MailProcessor.process', 'QUEUE', () => app.queue.add('mail', {})],
];
const recordsOf = async <K extends 'work' | 'block'>(
  kind: K,
): Promise<(K extends 'work' ? WorkRecord : BlockRecord)[]> => {
  await settle(app.app);
  return app.sink.records.filter((record) => record.kind === kind) as never;
};

/** A busy machine may keep the sampler from a block; none keeps it from each. */
const TRIES = 6;

it.each(entries)('a block in %s is named, and its record has the blocked time', async (name, method, run) => {
  app = await startMeasured();
  // The sampler's thread needs a moment to start.
  const loop = app.app.get(EVENT_LOOP, { strict: false });
  await until('the sampler looks', () => loop.isSampled);
  const isNamed = ({ request }: BlockRecord): boolean => request !== null;
  for (let tries = 0; tries < TRIES && !(await recordsOf('block')).some(isNamed); tries++) {
    app.sink.records.length = 0;
    await run();
    await until('the record', async () => (await recordsOf('work')).length > 0);
  }
  const block = (await recordsOf('block')).find(isNamed);
  const [record] = await recordsOf('work');
  expect(block).toMatchObject({ request: { method, route: name, handler: name } });
  expect(record!.blockedMs).toBeGreaterThan(BLOCK_MS / 2);
  expect(record!.blockedMs).toBeLessThanOrEqual(record!.durationMs);
});

it('a block in a part of an HTTP request counts for the part and for the request', async () => {
  app = await startMeasured();
  const isBlocked = async (): Promise<boolean> => (await recordsOf('work')).some(({ blockedMs }) => blockedMs > 0);
  for (let asked = 0; asked < TRIES && !(await isBlocked());) {
    await fetch(`${app.url}/orders`);
    asked += 1;
    await until('the record', async () => (await recordsOf('work')).length >= asked);
  }
  const [request] = (await app.requests()).filter(({ blockedMs }) => blockedMs > 0);
  const [part] = (await recordsOf('work')).filter(({ blockedMs }) => blockedMs > 0);
  expect(request!.handler).toBe('MessagesController.http');
  expect(part).toMatchObject({ name: 'OrdersResolver.order' });
  const block = (await recordsOf('block')).find(({ request: named }) => named !== null);
  expect(block).toMatchObject({ request: { handler: 'MessagesController.http' }, method: 'OrdersResolver.order' });
  expect(part!.blockedMs).toBeLessThanOrEqual(request!.blockedMs);
  const { routes } = app.app.get(PerfService).snapshot();
  const row = routes.find(({ route }) => route === 'OrdersResolver.order');
  expect(row!.blockedMs).toBeGreaterThanOrEqual(part!.blockedMs);
});

it('a contract counts the blocked time of its request', async () => {
  app = await startMeasured();
  let message = '';
  for (let tries = 0; tries < TRIES && message === ''; tries++)
    await expectWork(app.app, { get: '/orders' }, { blockedMs: { atMost: 50 } }).catch(
      (error: Error) => ({ message } = error),
    );
  expect(message).toMatch(/blocked \d{3} ms \(expected at most 50 ms\)/);
});
