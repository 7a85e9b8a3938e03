import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { Queue } from 'bullmq';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bullmqStore } from '../../../src/entries/bullmq.js';
import { temporaryFolder } from '../../fixtures/disk.js';
import { adminOf, ownRedis } from '../../fixtures/redis.js';
import { startProxy } from '../../fixtures/redis-proxy.js';
import { until } from '../../fixtures/until.js';
import { engineWith } from '../defer/engine.fixture.js';
import { getOrAdd, NO_WORKER } from '../defer/durable-entry.js';
import { expectBalanced } from '../defer/balanced.js';

const LONG = process.env['PERF_LONG'] !== undefined;

/** Durable work, with a spill, for a queue of its own. */
async function startStore(port: number) {
  const connection = { host: '127.0.0.1', port };
  const store = bullmqStore({ connection, queue: 'states', worker: false, spillPath: temporaryFolder() });
  const { engine } = engineWith({ store, drainTimeoutMs: 1_000 });
  await engine.durable!.start(NO_WORKER);
  onTestFinished(() => engine.drain(1_000));
  const accepted: string[] = [];
  const add = async (): Promise<void> => {
    const id = `w-${randomUUID()}`;
    const armed = engine.durable!.arm(getOrAdd(id), null)!;
    armed.commit(201);
    await armed.written;
    accepted.push(id);
  };
  return { engine, add, accepted };
}

async function storedIn(port: number): Promise<string[]> {
  const queue = new Queue('states', { connection: { host: '127.0.0.1', port } });
  const ids = (await queue.getJobs(['waiting', 'prioritized', 'delayed'])).map(({ id }) => id!);
  await queue.close();
  return ids.toSorted();
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const STATES: Record<string, { begin: string[][]; end: string[][] }> = {
  READONLY: { begin: [['REPLICAOF', '127.0.0.1', '1']], end: [['REPLICAOF', 'NO', 'ONE']] },
  OOM: { begin: [['CONFIG', 'SET', 'maxmemory', '1']], end: [['CONFIG', 'SET', 'maxmemory', '0']] },
  NOPERM: { begin: [['ACL', 'SETUSER', 'default', '-@scripting']], end: [['ACL', 'SETUSER', 'default', '+@all']] },
  NOSCRIPT: { begin: [['SCRIPT', 'FLUSH']], end: [['SCRIPT', 'FLUSH']] },
};

describe('durable work while Redis refuses to write', () => {
  it.each(Object.keys(STATES))(
    '%s, over and over: served throughout, nothing lost, nothing twice, nothing rejected',
    async (name) => {
      const { begin, end } = STATES[name]!;
      const { port } = await ownRedis();
      const admin = adminOf({ port });
      const { engine, add, accepted } = await startStore(port);
      const run = async (commands: string[][]): Promise<void> => {
        for (const [command, ...parameters] of commands) await admin.call(command!, ...parameters);
      };
      for (let round = 0; round < 6; round++) {
        await add();
        await run(begin);
        for (let i = 0; i < 10; i++) {
          await add();
          await pause(20);
        }
        await run(end);
        await pause(30);
      }
      await engine.idle();
      expect(await storedIn(port)).toEqual(accepted.toSorted());
      expect(engine.durable!.dead.list()).toEqual([]);
      expectBalanced(engine.stats());
      expect(engine.stats()).toMatchObject({ accepted: 66, stored: 66, failed: 0, dropped: 0 });
    },
  );

  it('MISCONF, because it cannot save: the same', async () => {
    const { port, dir } = await ownRedis();
    const admin = adminOf({ port });
    const { engine, add, accepted } = await startStore(port);
    await add();
    await engine.idle();
    await admin.config('SET', 'save', '3600 1');
    rmSync(dir!, { recursive: true });
    await admin.set('changed', '1');
    await admin.call('BGSAVE');
    await until('writes to be refused', async () => {
      const answer = await admin.set('more', '1').catch((error: Error) => error.message);
      return answer.startsWith('MISCONF');
    });
    for (let i = 0; i < 20; i++) await add();
    await pause(500);
    expect(engine.stats().stored).toBe(1);
    await admin.config('SET', 'save', '');
    await engine.idle();
    expect(await storedIn(port)).toEqual(accepted.toSorted());
    expect(engine.stats()).toMatchObject({ stored: 21, failed: 0, dropped: 0 });
  });
});

const proxyTo = async (port: number) => {
  const proxy = await startProxy(port);
  onTestFinished(proxy.close);
  return proxy;
};

describe('a connection that leads nowhere', () => {
  it('to a server that was demoted is made anew: work goes to the new primary', async () => {
    const [old, next] = [await ownRedis(), await ownRedis()];
    const proxy = await proxyTo(old.port);
    const { engine, add, accepted } = await startStore(proxy.port);
    await add();
    await engine.idle();
    proxy.leadTo(next.port);
    await adminOf(old).call('REPLICAOF', '127.0.0.1', String(next.port));
    const later = accepted.length;
    for (let i = 0; i < 10; i++) await add();
    await engine.idle();
    expect(await storedIn(next.port)).toEqual(accepted.slice(later).toSorted());
    expect(engine.stats()).toMatchObject({ stored: 11, failed: 0, dropped: 0 });
  });

  it.runIf(LONG)('because it is half open is given up after 10 s', { timeout: 60_000 }, async () => {
    const redis = await ownRedis();
    const proxy = await proxyTo(redis.port);
    const { engine, add, accepted } = await startStore(proxy.port);
    await add();
    await engine.idle();
    proxy.hold();
    for (let i = 0; i < 10; i++) await add();
    const startedMs = performance.now();
    await engine.idle();
    expect(performance.now() - startedMs).toBeLessThan(28_000);
    expect(await storedIn(redis.port)).toEqual(accepted.toSorted());
  });
});
