import { Controller, Get } from '@nestjs/common';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { startRedis } from '../../../scripts/redis.mjs';
import { either } from '../../fixtures/app.js';
import { cleanups, cleanUp, limitedRedis } from '../../fixtures/resilience.js';
import { until } from '../../fixtures/until.js';

afterEach(cleanUp);

const patient = { deadlineMs: 20_000 };

describe.each(either('fastify'))('a command of a resilient Redis client, on %s', (adapter) => {
  it('has no more time than its request', async () => {
    const redis = await startRedis({ own: true });
    cleanups.push(() => redis.stop());
    const client = new Redis(redis.port);
    @Controller()
    class KeysController {
      @Get('late')
      late() {
        return client.get('resilience:late');
      }

      @Get('too-late')
      async tooLate() {
        await new Promise((resolve) => setTimeout(resolve, 100));
        return client.incr('resilience:never-sent');
      }
    }
    const around = { adapter, requestDeadlineMs: 80, metadata: { controllers: [KeysController] } };
    const { url, cache } = await limitedRedis(client, patient, around);
    await until('a connection', () => client.status === 'ready');
    expect((await fetch(`${url}/too-late`)).status).toBe(504);
    expect(cache.stats()).toMatchObject({ attempts: 0, failed: 0, ownDeadlines: 1 });
    expect(await client.get('resilience:never-sent')).toBeNull();
    redis.child!.kill('SIGSTOP');
    cleanups.push(() => redis.child!.kill('SIGCONT'));
    expect((await fetch(`${url}/late`)).status).toBe(504);
    expect(cache.stats()).toMatchObject({ failed: 0, deadlines: 0, ownDeadlines: 2 });
  });
});

describe('a resilient Redis client', () => {
  it('refuses a deadline for one `call()`, whose commands have their own', async () => {
    const { cache } = await limitedRedis(new Redis(inject('redisUrl')), patient);
    await expect(cache.call(() => 1, { deadlineMs: 5 })).rejects.toMatchObject({
      code: 'PERF_ERR_OPTION',
      message: expect.stringContaining('resilientRedis(client, { deadlineMs })'),
    });
    await expect(cache.call(undefined as never)).rejects.toMatchObject({ code: 'PERF_ERR_OPTION' });
    expect(await cache.call(({ remainingMs }) => remainingMs)).toBe(20_000);
  });
});
