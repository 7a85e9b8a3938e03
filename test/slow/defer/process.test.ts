import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Queue, type Job } from 'bullmq';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { freePort } from '../../../scripts/redis.mjs';
import { bullmqStore } from '../../../src/entries/bullmq.js';
import type { TestApp } from '../../fixtures/app.js';
import { temporaryFolder } from '../../fixtures/disk.js';
import { startOrders } from '../../fixtures/durable-orders.js';
import { ownRedis } from '../../fixtures/redis.js';
import { spilledIn } from '../../fixtures/spilled.js';
import { until } from '../../fixtures/until.js';

/** Once in the normal run, several times in the long one: what is killed is hit at another moment each time. */
const ROUNDS = process.env['PERF_LONG'] === undefined ? 1 : 5;

async function startChild(
  redisPort: number,
  spillPath = 'none',
  role = 'producer',
): Promise<{ child: ChildProcess; url: string }> {
  const program = join(inject('compiledFixtures'), 'orders.process.js');
  const child = fork(program, [String(redisPort), spillPath, role], { execArgv: [], silent: true });
  onTestFinished(() => void child.kill('SIGKILL'));
  // A full pipe would stop it: the longer Redis is away, the more ioredis writes.
  child.stdout!.resume();
  child.stderr!.resume();
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { child, url: `http://127.0.0.1:${port}` };
}

/** The next process, as far as the folder and Redis can tell: an application of this one. */
function startAnew(port: number, spillPath: string): Promise<TestApp> {
  const connection = { host: '127.0.0.1', port };
  return startOrders(port, { store: bullmqStore({ connection, queue: 'durable', worker: false, spillPath }) });
}

/** Orders until the server is gone; returns the ids that were answered with 201 to the last byte. */
function placeOrders(url: string) {
  const accepted: string[] = [];
  let count = 0;
  const client = async (name: number): Promise<void> => {
    for (;;) {
      const id = `${name}-${count++}`;
      try {
        const response = await fetch(`${url}/orders/${id}`, { method: 'POST' });
        await response.arrayBuffer();
        if (response.status === 201) accepted.push(id);
      } catch {
        return;
      }
    }
  };
  const done = Promise.all(Array.from({ length: 20 }, (_, name) => client(name)));
  return { accepted, done };
}

async function idsIn(name: string, port: number, read: (job: Job) => string): Promise<string[]> {
  const queue = new Queue(name, { connection: { host: '127.0.0.1', port } });
  const jobs = await queue.getJobs(['waiting', 'delayed', 'active', 'completed', 'failed']);
  await queue.close();
  return jobs.map(read);
}
const durableIds = (port: number): Promise<string[]> =>
  idsIn('durable', port, ({ data }) => (data as { data: { id: string } }).data.id);
const mailIds = (port: number): Promise<string[]> => idsIn('mail', port, ({ data }) => (data as { id: string }).id);

const lost = (accepted: readonly string[], stored: readonly string[]): string[] => {
  const known = new Set(stored);
  return accepted.filter((id) => !known.has(id));
};

describe('the end of a process', () => {
  it.each(['there', 'away'])(
    'app.close() with Redis %s leaves nothing behind: the process ends by itself',
    async (redis) => {
      const port = redis === 'there' ? (await ownRedis()).port : await freePort();
      const { child, url } = await startChild(port, 'none', 'worker');
      for (let i = 0; i < 20; i++) expect((await fetch(`${url}/orders/${i}`, { method: 'POST' })).status).toBe(201);
      const exit = once(child, 'exit');
      child.send('close');
      expect(await exit).toEqual([0, null]);
    },
    60_000,
  );

  it('SIGTERM under load, with @nestjs/bullmq closing its queues: every 201 has both its jobs', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const redis = await ownRedis();
      const { child, url } = await startChild(redis.port);
      const orders = placeOrders(url);
      await until('load', () => orders.accepted.length > 100);
      const exit = once(child, 'exit');
      child.kill('SIGTERM');
      const [code, signal] = (await exit) as [number | null, string | null];
      await orders.done;
      expect([code, signal]).toEqual([null, 'SIGTERM']);
      expect(lost(orders.accepted, await durableIds(redis.port))).toEqual([]);
      expect(lost(orders.accepted, await mailIds(redis.port))).toEqual([]);
    }
  }, 120_000);

  it('SIGKILL under load while Redis is away, with the spill file: nothing durable is lost after a restart', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const spillPath = join(temporaryFolder(), 'spill');
      const port = await freePort();
      const first = await startChild(port, spillPath);
      const orders = placeOrders(first.url);
      await until('load', () => orders.accepted.length > 100);
      const exit = once(first.child, 'exit');
      first.child.kill('SIGKILL');
      await Promise.all([exit, orders.done]);
      expect(spilledIn(spillPath).ids.length).toBeGreaterThan(0);
      await ownRedis({ port });
      await startAnew(port, spillPath);
      await until('the spilled work', async () => lost(orders.accepted, await durableIds(port)).length === 0);
      const stored = await durableIds(port);
      expect(stored.length - new Set(stored).size).toBe(0);
      await until('its entries to be struck off', () => spilledIn(spillPath).ids.length === 0);
    }
  }, 120_000);

  it('SIGKILL under load with Redis there and the spill file: nothing lost, nothing twice', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const spillPath = join(temporaryFolder(), 'spill');
      const redis = await ownRedis();
      const first = await startChild(redis.port, spillPath);
      const orders = placeOrders(first.url);
      await until('load', () => orders.accepted.length > 100);
      const exit = once(first.child, 'exit');
      first.child.kill('SIGKILL');
      await Promise.all([exit, orders.done]);
      await startAnew(redis.port, spillPath);
      await until('all work', async () => lost(orders.accepted, await durableIds(redis.port)).length === 0);
      const stored = await durableIds(redis.port);
      expect(stored.length - new Set(stored).size).toBe(0);
    }
  }, 120_000);
});
