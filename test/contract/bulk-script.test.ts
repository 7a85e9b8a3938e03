import { randomUUID } from 'node:crypto';
import { Queue, type JobsOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { startRedis } from '../../scripts/redis.mjs';
import { withBulkScript } from '../../src/defer/outbox/bulk-script.js';

// Of its own: what others send would be counted, and they would lose their scripts.
const server = await startRedis({ own: true });
afterAll(() => server.stop());
const connection = { host: '127.0.0.1', port: server.port };
const open: { close(): Promise<unknown> }[] = [];

function queueNamed(name: string): Queue {
  const queue = new Queue(name, { connection });
  open.push(queue);
  return queue;
}

/** Everything that a queue has written, with its name and its clock taken out. */
async function contentOf(queue: Queue): Promise<unknown> {
  const redis = new Redis(connection);
  const content: Record<string, unknown> = {};
  const prefix = `bull:${queue.name}:`;
  for (const key of (await redis.keys(`${prefix}*`)).sort()) {
    const type = await redis.type(key);
    const name = key.slice(prefix.length);
    if (type === 'hash') {
      const { timestamp, ...fields } = await redis.hgetall(key);
      content[name] = name === 'meta' ? fields : { ...fields, timestamp: typeof timestamp };
    } else if (type === 'list') content[name] = await redis.lrange(key, 0, -1);
    else if (type === 'zset') content[name] = await redis.zrange(key, '0', '-1');
    else if (type === 'stream') content[name] = (await redis.xrange(key, '-', '+')).map(([, fields]) => fields);
    else content[name] = await redis.get(key);
  }
  await redis.quit();
  return JSON.parse(JSON.stringify(content).replaceAll(queue.name, 'QUEUE'));
}

const jobs = (options: JobsOptions = {}) =>
  ['a', 'b', 'c'].map((id) => ({
    name: 'order',
    data: { id, text: 'é "quoted"', list: [1, null] },
    opts: { jobId: id, ...options },
  }));

/** Commands of a kind that Redis has been sent since the start, by anybody. */
async function scriptCalls(): Promise<number> {
  const redis = new Redis(connection);
  const stats = await redis.info('commandstats');
  await redis.quit();
  const calls = [...stats.matchAll(/cmdstat_(?:evalsha|eval):calls=(\d+)/g)];
  return calls.reduce((sum, [, count]) => sum + Number(count), 0);
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((queue) => queue.close()));
});

describe('a bulk as one script call', () => {
  it.each<[string, JobsOptions]>([
    ['plain jobs', {}],
    [
      'attempts, backoff and what is kept',
      { attempts: 3, backoff: { type: 'exponential', delay: 5 }, removeOnFail: 5 },
    ],
    ['last in, first out', { lifo: true }],
    ['delayed jobs, which go the usual way', { delay: 60_000 }],
    ['jobs with a priority, which go the usual way', { priority: 2 }],
    ['deduplication', { deduplication: { id: 'same' } }],
  ])('writes the same into Redis as addBulk: %s', async (_, options) => {
    const usual = queueNamed(`usual-${randomUUID()}`);
    const scripted = queueNamed(`script-${randomUUID()}`);
    const expected = await usual.addBulk(jobs(options));
    const added = await withBulkScript(scripted).addBulk(jobs(options));
    expect(added.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
    const timeless = (content: unknown): unknown =>
      JSON.parse(JSON.stringify(content).replaceAll(/"\d{13}"/g, '"TIME"')) as unknown;
    expect(timeless(await contentOf(scripted))).toEqual(timeless(await contentOf(usual)));
  });

  it('needs one call for all of them, and stores nothing twice when it is sent again', async () => {
    const queue = queueNamed(`script-${randomUUID()}`);
    await queue.waitUntilReady();
    const scripted = withBulkScript(queue);
    await scripted.addBulk(jobs());
    const before = await scriptCalls();
    await scripted.addBulk(jobs());
    expect((await scriptCalls()) - before).toBe(1);
    expect(await queue.getJobCountByTypes('wait')).toBe(3);
  });

  it('survives a Redis that has forgotten its scripts', async () => {
    const queue = queueNamed(`script-${randomUUID()}`);
    const scripted = withBulkScript(queue);
    await scripted.addBulk(jobs());
    const redis = new Redis(connection);
    await redis.script('FLUSH');
    await redis.quit();
    await scripted.addBulk([...jobs(), { name: 'order', data: {}, opts: { jobId: 'd' } }]);
    expect(await queue.getJobCountByTypes('wait')).toBe(4);
  });

  it('leaves a queue that is none of BullMQ’s on Redis as it is', () => {
    const other = { name: 'other', addBulk: () => Promise.resolve([]) };
    expect(withBulkScript(other)).toBe(other);
  });

  it('keeps an addBulk that the user has overridden', async () => {
    const seen: number[] = [];
    class Counted extends Queue {
      override addBulk(added: Parameters<Queue['addBulk']>[0]): ReturnType<Queue['addBulk']> {
        seen.push(added.length);
        return super.addBulk(added);
      }
    }
    const queue = new Counted(`script-${randomUUID()}`, { connection });
    open.push(queue);
    await withBulkScript(queue as Queue).addBulk(jobs());
    expect(seen).toEqual([3]);
    expect(await queue.getJobCountByTypes('wait')).toBe(3);
  });
});
