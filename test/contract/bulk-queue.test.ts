import { randomUUID } from 'node:crypto';
import { Job, Queue, type JobsOptions, type QueueOptions, type Telemetry } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { startRedis } from '../../scripts/redis.mjs';
import { BulkQueue, type BulkJob } from '../../src/defer/outbox/bulk-queue.js';

// Of its own: what others send would be counted, and they would lose their scripts.
const server = await startRedis({ own: true });
afterAll(() => server.stop());
const connection = { host: '127.0.0.1', port: server.port };
const open: { close(): Promise<unknown> }[] = [];

function queueNamed(name: string, options: Omit<QueueOptions, 'connection'> = {}): Queue {
  const queue = new Queue(name, { ...options, connection });
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

type Jobs = Parameters<Queue['addBulk']>[0];

const jobs = (options: JobsOptions = {}): Jobs =>
  ['a', 'b', 'c'].map((id) => ({
    name: 'order',
    data: { id, text: 'é "quoted"', list: [1, null] },
    opts: { jobId: id, ...options },
  }));

/** As untyped code gives it: for BullMQ not the same as no option. */
const UNDECIDED = { attempts: undefined } as unknown as JobsOptions;

/** Three jobs of one, so that runs of two and of one stand in turns. */
const several = (job: Jobs[number], i: number): Jobs => [
  { ...job, opts: { jobId: `one-${i}` } },
  { ...job, opts: { jobId: `two-${i}` } },
  { ...job, name: `other-${i % 2}`, opts: { jobId: `three-${i}`, attempts: 2, backoff: { type: 'fixed', delay: i } } },
];

/** As they stand in a buffer. */
const buffered = (given: Jobs): BulkJob[] =>
  given.map(({ name, data, opts }) => ({ name, json: JSON.stringify(data), opts: { ...opts } }));

/** Commands of a kind that Redis has been sent since the start, by anybody. */
async function scriptCalls(): Promise<number> {
  const redis = new Redis(connection);
  const stats = await redis.info('commandstats');
  await redis.quit();
  const calls = [...stats.matchAll(/cmdstat_(?:evalsha|eval):calls=(\d+)/g)];
  return calls.reduce((sum, [, count]) => sum + Number(count), 0);
}

afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(open.splice(0).map((queue) => queue.close()));
});

const timeless = (content: unknown): unknown =>
  JSON.parse(JSON.stringify(content).replaceAll(/"\d{13}"/g, '"TIME"')) as unknown;

describe('a bulk as one script call', () => {
  it.each<[string, Jobs]>([
    ['plain jobs', jobs()],
    [
      'attempts, backoff and what is kept',
      jobs({ attempts: 3, backoff: { type: 'exponential', delay: 5 }, removeOnFail: 5 }),
    ],
    ['last in, first out', jobs({ lifo: true })],
    ['delayed jobs, which go the usual way', jobs({ delay: 60_000 })],
    ['jobs with a priority, which go the usual way', jobs({ priority: 2 })],
    ['deduplication', jobs({ deduplication: { id: 'same' } })],
    ['several names and options in turns', jobs().flatMap((job, i) => several(job, i))],
    ['names in turns', jobs().flatMap((job, i) => [job, { ...job, name: 'other', opts: { jobId: `other-${i}` } }])],
    ['options in turns', jobs().flatMap((job, i) => [job, { ...job, opts: { jobId: `twice-${i}`, attempts: 2 } }])],
    ['no data at all', [...jobs(), { name: 'order', data: undefined, opts: { jobId: 'none' } }]],
    [
      'an option that is undefined beside none',
      jobs().flatMap((job, i) => [job, { ...job, opts: { jobId: `none-${i}`, ...UNDECIDED } }]),
    ],
    [
      'ids that are half a character',
      ['\ud800x', '\udfffx'].map((jobId) => ({ name: 'order', data: {}, opts: { jobId } })),
    ],
    ['an id that is given twice', [...jobs(), ...jobs()]],
    ['a single job', jobs().slice(0, 1)],
  ])('writes the same into Redis as addBulk: %s', async (_, given) => {
    const usual = queueNamed(`usual-${randomUUID()}`);
    const scripted = queueNamed(`script-${randomUUID()}`);
    await usual.addBulk(given);
    await new BulkQueue(scripted).add(buffered(given));
    expect(timeless(await contentOf(scripted))).toEqual(timeless(await contentOf(usual)));
  });

  it('writes the same with the queue’s own options', async () => {
    const given = jobs().flatMap((job, i) => [{ ...job, opts: { jobId: `none-${i}`, ...UNDECIDED } }, job]);
    for (const defaultJobOptions of [
      { attempts: 7, removeOnComplete: true },
      { delay: 60_000 },
      { sizeLimit: 1_000 },
    ]) {
      const usual = queueNamed(`usual-${randomUUID()}`, { defaultJobOptions });
      const scripted = queueNamed(`script-${randomUUID()}`, { defaultJobOptions });
      await usual.addBulk(given);
      await new BulkQueue(scripted).add(buffered(given));
      expect(timeless(await contentOf(scripted))).toEqual(timeless(await contentOf(usual)));
    }
  });

  it('refuses what BullMQ refuses', async () => {
    const limited = new BulkQueue(queueNamed(`script-${randomUUID()}`, { defaultJobOptions: { sizeLimit: 10 } }));
    await expect(limited.add(buffered(jobs()))).rejects.toThrow('exceeds the limit');
    const bulks = new BulkQueue(queueNamed(`script-${randomUUID()}`));
    for (const jobId of ['12', 'NaN']) {
      const numbered = buffered([...jobs(), { name: 'order', data: {}, opts: { jobId } }]);
      await expect(bulks.add(numbered)).rejects.toThrow('Custom Id cannot be integers');
    }
  });

  it('needs one call for all of them, and stores nothing twice when it is sent again', async () => {
    const queue = queueNamed(`script-${randomUUID()}`);
    await queue.waitUntilReady();
    const bulks = new BulkQueue(queue);
    await bulks.add(buffered(jobs()));
    const before = await scriptCalls();
    await bulks.add(buffered(jobs()));
    expect((await scriptCalls()) - before).toBe(1);
    expect(await queue.getJobCountByTypes('wait')).toBe(3);
  });

  it('makes one job object for a run of jobs that differ in id and data', async () => {
    const made = vi.spyOn(Job.prototype, 'asJSON');
    await new BulkQueue(queueNamed(`script-${randomUUID()}`)).add(buffered(jobs()));
    expect(made).toHaveBeenCalledTimes(1);
  });

  it('has each job made where a queue makes jobs of its own class', async () => {
    class Own extends Queue {
      override get Job(): typeof Job {
        return Job;
      }
    }
    const queue = new Own(`script-${randomUUID()}`, { connection });
    open.push(queue);
    const made = vi.spyOn(Job.prototype, 'asJSON');
    await new BulkQueue(queue).add(buffered(jobs()));
    expect(made).toHaveBeenCalledTimes(3);
  });

  it('survives a Redis that has forgotten its scripts', async () => {
    const queue = queueNamed(`script-${randomUUID()}`);
    const bulks = new BulkQueue(queue);
    await bulks.add(buffered(jobs()));
    const redis = new Redis(connection);
    await redis.script('FLUSH');
    await redis.quit();
    await bulks.add(buffered([...jobs(), { name: 'order', data: {}, opts: { jobId: 'd' } }]));
    expect(await queue.getJobCountByTypes('wait')).toBe(4);
  });

  it('gives a queue that is none of BullMQ’s every job', async () => {
    const added: Jobs = [];
    const other = { name: 'other', addBulk: async (given: Jobs) => void added.push(...given) };
    await new BulkQueue(other).add(buffered(jobs()));
    expect(added).toEqual(jobs());
  });

  it('shows every job to the queue’s telemetry', async () => {
    const counts: unknown[] = [];
    const nothing = (): void => {};
    const span = {
      setSpanOnContext: nothing,
      setAttribute: nothing,
      setAttributes: (attributes: Record<string, unknown>) => void counts.push(attributes['bullmq.job.bulk.count']),
      addEvent: nothing,
      recordException: nothing,
      end: nothing,
    };
    const contextManager = {
      with: <A extends () => ReturnType<A>>(_context: unknown, run: A) => run(),
      active: nothing,
      getMetadata: () => '',
      fromMetadata: nothing,
    };
    const telemetry = { tracer: { startSpan: () => span }, contextManager } as unknown as Telemetry;
    await new BulkQueue(queueNamed(`script-${randomUUID()}`, { telemetry })).add(buffered(jobs()));
    expect(counts).toContain(3);
  });

  it('keeps an addBulk that the user has overridden', async () => {
    const seen: unknown[] = [];
    class Counted extends Queue {
      override addBulk(added: Jobs): ReturnType<Queue['addBulk']> {
        seen.push(...added.map(({ data }) => data as unknown));
        return super.addBulk(added);
      }
    }
    const queue = new Counted(`script-${randomUUID()}`, { connection });
    open.push(queue);
    await new BulkQueue(queue).add(buffered(jobs()));
    expect(seen).toEqual(jobs().map(({ data }) => data as unknown));
    expect(await queue.getJobCountByTypes('wait')).toBe(3);
  });

  it('leaves a queue that keeps private state its own', async () => {
    class Private extends Queue {
      #sent = 0;
      override addBulk(added: Jobs): ReturnType<Queue['addBulk']> {
        this.#sent += added.length;
        return super.addBulk(added);
      }
      get sent(): number {
        return this.#sent;
      }
    }
    const queue = new Private(`script-${randomUUID()}`, { connection });
    open.push(queue);
    await new BulkQueue(queue).add(buffered(jobs()));
    expect(queue.sent).toBe(3);
  });

  it('leaves a queue that makes its jobs itself its own', async () => {
    class Tenant extends Queue {
      override addBulk(added: Jobs): ReturnType<Queue['addBulk']> {
        const own = added.map(({ name, data, opts }) => ({ name, data: { ...(data as object), tenant: 't1' }, opts }));
        return this.Job.createBulk(this, own as never);
      }
    }
    const queue = new Tenant(`script-${randomUUID()}`, { connection });
    open.push(queue);
    await new BulkQueue(queue).add(buffered(jobs()));
    expect((await queue.getJob('c'))?.data).toMatchObject({ id: 'c', tenant: 't1' });
  });

  it('goes BullMQ’s way on a client that pipelines by itself', async () => {
    const client = new Redis({ ...connection, enableAutoPipelining: true, maxRetriesPerRequest: null });
    const queue = new Queue(`script-${randomUUID()}`, { connection: client });
    open.push(queue, { close: () => client.quit() });
    await queue.waitUntilReady();
    const [, added] = await Promise.all([client.get('other'), new BulkQueue(queue).add(buffered(jobs()))]);
    expect(added).toHaveLength(3);
    expect(await queue.getJobCountByTypes('wait')).toBe(3);
  });

  it('shows every job to a tracer that has written itself into addBulk', async () => {
    const published: number[] = [];
    const channel = { publish: (count: number): void => void published.push(count) };
    const queue = queueNamed(`script-${randomUUID()}`);
    const own = Object.getOwnPropertyDescriptor(Queue.prototype, 'addBulk')!;
    Object.defineProperty(Queue.prototype, 'addBulk', {
      ...own,
      value: function (this: Queue, added: Jobs) {
        channel.publish(added.length);
        return Job.createBulk(this, added);
      },
    });
    try {
      await new BulkQueue(queue).add(buffered(jobs()));
    } finally {
      Object.defineProperty(Queue.prototype, 'addBulk', own);
    }
    expect(published).toEqual([3]);
  });

  it('shows every job to a spy, however late it comes', async () => {
    const queue = queueNamed(`script-${randomUUID()}`);
    const bulks = new BulkQueue(queue);
    await bulks.add(buffered(jobs()));
    const onQueue = vi.spyOn(queue, 'addBulk');
    await bulks.add(buffered(jobs()));
    expect(onQueue).toHaveBeenCalledExactlyOnceWith(jobs());
    onQueue.mockRestore();
    const onClass = vi.spyOn(Queue.prototype, 'addBulk');
    await bulks.add(buffered(jobs()));
    expect(onClass).toHaveBeenCalledExactlyOnceWith(jobs());
    onClass.mockRestore();
    const onJob = vi.spyOn(Job, 'createBulk');
    await bulks.add(buffered(jobs()));
    expect(onJob.mock.calls[0]?.[1]).toHaveLength(3);
  });
});
