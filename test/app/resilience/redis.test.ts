import { Redis } from 'ioredis';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { freePort, startRedis } from '../../../scripts/redis.mjs';
import { cleanups, cleanUp, codeOf, limitedRedis } from '../../fixtures/resilience.js';
import { until } from '../../fixtures/until.js';

afterEach(cleanUp);

const ownRedis = async (port?: number) => {
  const redis = await startRedis({ own: true, appendOnly: true, ...(port === undefined ? {} : { port }) });
  cleanups.push(() => redis.stop());
  return redis;
};

describe('a resilient Redis client', () => {
  it('does what it did before, and counts it', async () => {
    const client = new Redis(inject('redisUrl'));
    const { cache } = await limitedRedis(client, { deadlineMs: 5_000 });
    await client.set('resilience:a', '1');
    expect(await client.incrby('resilience:a', 2)).toBe(3);
    expect(await client.pipeline().get('resilience:a').incr('resilience:a').exec()).toEqual([
      [null, '3'],
      [null, 4],
    ]);
    expect(await client.multi().incr('resilience:a').get('resilience:a').exec()).toEqual([
      [null, 5],
      [null, '5'],
    ]);
    client.defineCommand('twice', { numberOfKeys: 1, lua: "return redis.call('get', KEYS[1]) * 2" });
    expect(await (client as unknown as { twice(key: string): Promise<number> }).twice('resilience:a')).toBe(10);
    await expect(client.lpush('resilience:a', 'x')).rejects.toThrow('WRONGTYPE');
    // A wrong type is an answer.
    await until('all are counted', () => cache.stats().inFlight === 0);
    expect(cache.stats()).toMatchObject({ calls: 6, succeeded: 6, failed: 0, inFlight: 0 });
  });

  it('has an own `sendCommand` while the application lives, and its duplicates have none', async () => {
    const client = new Redis(inject('redisUrl'));
    const { app } = await limitedRedis(client);
    expect(Object.hasOwn(client, 'sendCommand')).toBe(true);
    const duplicate = client.duplicate();
    cleanups.push(() => duplicate.disconnect());
    expect(Object.hasOwn(duplicate, 'sendCommand')).toBe(false);
    await app.close();
    expect(Object.hasOwn(client, 'sendCommand')).toBe(false);
    expect(await client.ping()).toBe('PONG');
  });

  it('ends a command that waits for a connection, and never sends it afterwards', async () => {
    const port = await freePort();
    const client = new Redis({ port, maxRetriesPerRequest: null, retryStrategy: () => 20 });
    const { cache } = await limitedRedis(client, { breaker: false });
    const startedMs = performance.now();
    const lost = [
      client.incr('resilience:n'),
      client.pipeline().incr('resilience:n').incr('resilience:n').exec(),
    ] as const;
    expect(await codeOf(lost[0])).toBe('PERF_ERR_DEADLINE');
    expect(performance.now() - startedMs).toBeLessThan(2_000);
    const results = await lost[1];
    expect(results?.map(([error]) => (error as unknown as { code: string }).code)).toEqual([
      'PERF_ERR_DEADLINE',
      'PERF_ERR_DEADLINE',
    ]);
    await ownRedis(port);
    // Asked without the client's deadline: a busy machine takes longer for an answer.
    const other = new Redis(port);
    cleanups.push(() => other.disconnect());
    await until('Redis is back', async () => (await codeOf(client.ping())) === 'answered PONG');
    expect(await other.get('resilience:n')).toBeNull();
    await until('a pipeline passes', async () => {
      const [[, answer]] = (await client.pipeline().set('resilience:n', '1').exec()) as [[unknown, unknown]];
      return answer === 'OK';
    });
    expect(await other.get('resilience:n')).toBe('1');
    await until('all are counted', () => cache.stats().inFlight === 0);
    // On a machine that keeps this process waiting they are our own.
    const { deadlines, ownDeadlines } = cache.stats();
    expect(deadlines + ownDeadlines).toBeGreaterThanOrEqual(2);
  });

  it('ends commands that a stalled server holds, refuses further ones, and lets them through when it is back', async () => {
    const redis = await ownRedis();
    const client = new Redis(redis.port);
    const { cache } = await limitedRedis(client, { deadlineMs: 150, breaker: { atLeast: 5, openMs: 300, probes: 2 } });
    await until('it is set', async () => (await codeOf(client.set('resilience:b', 'kept'))) === 'answered OK');
    redis.child?.kill('SIGSTOP');
    const held = Array.from({ length: 8 }, () => codeOf(client.get('resilience:b')));
    expect(await Promise.all(held)).toEqual(held.map(() => 'PERF_ERR_DEADLINE'));
    await until('it is open', async () => (await codeOf(client.get('resilience:b'))) === 'PERF_ERR_OPEN');
    // It may be tried again meanwhile, and is open again then.
    await until('a pipeline is refused', async () => {
      const [[refused]] = (await client.pipeline().get('resilience:b').exec()) as unknown as [[{ code: string }]];
      return refused.code === 'PERF_ERR_OPEN';
    });
    redis.child?.kill('SIGCONT');
    await until('it is tried again', async () => (await codeOf(client.get('resilience:b'))) === 'answered kept');
    await until('it is closed', async () => (await codeOf(client.ping())) !== '' && cache.state === 'closed');
    // Replies to what was given up have not moved others' replies.
    let answered = 0;
    await until('five replies, each to its own', async () => {
      const reply = await codeOf(client.echo(`${answered}`));
      // Too late on a busy machine is no reply.
      if (reply.startsWith('answered')) expect(reply).toBe(`answered ${answered++}`);
      return answered === 5;
    });
  });

  it('lets blocking commands and subscriptions wait for as long as they want', async () => {
    const client = new Redis(inject('redisUrl'));
    const { cache } = await limitedRedis(client, { deadlineMs: 30 });
    const other = new Redis(inject('redisUrl'));
    cleanups.push(() => other.disconnect());
    await until('a connection', () => client.status === 'ready');
    expect(await client.blpop('resilience:nothing', 0.2)).toBeNull();
    expect(await client.xread('BLOCK', 150, 'STREAMS', 'resilience:stream', '$')).toBeNull();
    const messages: string[] = [];
    client.on('message', (_channel, message: string) => messages.push(message));
    await client.subscribe('resilience:channel');
    await other.publish('resilience:channel', 'hello');
    await until('a message', () => messages.length === 1);
    expect(cache.stats()).toMatchObject({ failed: 0, deadlines: 0, calls: 0 });
  });

  it.each(['a wrong type first', 'a wrong type last'])(
    'a pipeline has failed when one of its commands has (%s)',
    async (order) => {
      const client = new Redis((await ownRedis()).port);
      const { cache } = await limitedRedis(client, {
        deadlineMs: 20_000,
        breaker: { ratio: 0.1, atLeast: 1, openMs: 60_000 },
      });
      await client.rpush('resilience:list', 'x');
      await client.config('SET', 'min-replicas-to-write', '1');
      const commands = [
        ['get', 'resilience:list'],
        ['set', 'resilience:a', '1'],
      ];
      const sent = order.endsWith('first') ? commands : commands.toReversed();
      const answers = (await client.pipeline(sent).exec())!.map(([error]) => String(error));
      expect(answers.toSorted()).toEqual([expect.stringContaining('NOREPLICAS'), expect.stringContaining('WRONGTYPE')]);
      await until('it is open', () => cache.state === 'open');
      expect(cache.stats()).toMatchObject({ failed: 1, opened: 1 });
    },
  );
});
