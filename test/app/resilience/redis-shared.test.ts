import { isDeepStrictEqual } from 'node:util';
import { Queue, Worker } from 'bullmq';
import { Cluster, Redis } from 'ioredis';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { startRedis } from '../../../scripts/redis.mjs';
import { cleanups, cleanUp, codeOf, limitedRedis } from '../../fixtures/resilience.js';
import { until } from '../../fixtures/until.js';

afterEach(cleanUp);

describe('a resilient cluster', () => {
  it('has deadlines in every queue, and sends nothing from its own whose time is up', async () => {
    const redis = await startRedis({ own: true, appendOnly: true, cluster: true });
    cleanups.push(() => redis.stop());
    const admin = new Redis(redis.port);
    cleanups.push(() => admin.disconnect());
    const options = { clusterRetryStrategy: () => 20 };
    const cluster = new Cluster([{ host: '127.0.0.1', port: redis.port }], options);
    await limitedRedis(cluster, { deadlineMs: 150, breaker: false });
    // Not ready: its own queue.
    expect(await codeOf(cluster.incr('resilience:early'))).toBe('PERF_ERR_DEADLINE');
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
    await until('it serves', async () => (await codeOf(cluster.set('resilience:k', '1'))) === 'answered OK');
    // Asked without the client's deadline: a busy machine takes longer for an answer.
    expect(await admin.get('resilience:early')).toBeNull();
    await until('a pipeline passes', async () => {
      const answers = await cluster.pipeline().set('resilience:k', '2').get('resilience:k').exec();
      return isDeepStrictEqual(answers, [
        [null, 'OK'],
        [null, '2'],
      ]);
    });
    // A node whose connection is not made yet: the queue of that connection.
    const second = new Cluster([{ host: '127.0.0.1', port: redis.port }], { enableReadyCheck: false });
    await limitedRedis(second, { deadlineMs: 150, breaker: false });
    await until('it knows its nodes', () => second.status === 'ready');
    expect(second.nodes('all').map(({ status }) => status)).toEqual(['wait']);
    redis.child?.kill('SIGSTOP');
    const lost = [codeOf(second.incr('resilience:k')), codeOf(second.incr('resilience:k'))];
    expect(await Promise.all(lost)).toEqual(['PERF_ERR_DEADLINE', 'PERF_ERR_DEADLINE']);
    redis.child?.kill('SIGCONT');
    await until('it serves', async () => (await codeOf(second.get('resilience:k'))).startsWith('answered'));
  });
});

describe('a resilient client that BullMQ was given', () => {
  it('leaves the connections alone that BullMQ makes of it: a worker waits for as long as it takes', async () => {
    const client = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null });
    const { cache } = await limitedRedis(client, { deadlineMs: 2_000 });
    const name = `resilience-${process.pid}-${Date.now()}`;
    const done: unknown[] = [];
    const worker = new Worker(name, async ({ data }) => void done.push(data), { connection: client, drainDelay: 1 });
    const queue = new Queue(name, { connection: client });
    cleanups.push(async () => {
      await worker.close();
      await queue.obliterate({ force: true });
      await queue.close();
    });
    await worker.waitUntilReady();
    // Longer than a worker waits for a job at once.
    await new Promise((resolve) => setTimeout(resolve, 1_300));
    await queue.add('job', { n: 1 });
    await until('the job is done', () => done.length === 1);
    expect(cache.stats()).toMatchObject({ deadlines: 0, ownDeadlines: 0, failed: 0, opened: 0 });
  });
});
