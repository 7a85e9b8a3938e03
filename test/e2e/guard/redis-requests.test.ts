import { Redis } from 'ioredis';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { guard, guardRedis, upstreamToken, type GuardedUpstream } from '../../../src/entries/guard.js';
import { startApp } from '../../fixtures/app.js';
import { until } from '../../fixtures/until.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

async function guarded(client: Redis) {
  client.on('error', () => {});
  cleanups.push(() => client.disconnect());
  const cache = guardRedis(client, { deadlineMs: 20_000 });
  const app = await startApp('fastify', { perf: { extensions: [guard({ upstreams: { cache } })] } });
  cleanups.push(() => app.close());
  return { ...app, cache: app.app.get<GuardedUpstream>(upstreamToken('cache')) };
}

describe('a guarded Redis client', () => {
  it('guards again after a connection that was lost within a transaction', async () => {
    const client = new Redis(inject('redisUrl'));
    const { cache } = await guarded(client);
    await until('a connection', () => client.status === 'ready');
    await client.multi({ pipeline: false });
    client.disconnect(true);
    await until('a new connection', () => client.status === 'ready');
    await client.ping();
    await until('it is counted', () => cache.stats().succeeded === 1);
  });

  it('listens to the client for as long as the application lives', async () => {
    const client = new Redis(inject('redisUrl'));
    await until('a connection', () => client.status === 'ready');
    const before = client.listenerCount('close');
    const { close } = await guarded(client);
    await close();
    expect(client.listenerCount('close')).toBe(before);
  });
});
