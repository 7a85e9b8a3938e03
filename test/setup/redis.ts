import { startRedis } from '../../scripts/redis.mjs';
import type { ProvidedContext } from 'vitest';
import type { TestProject } from 'vitest/node';

/** One real Redis for the whole run: `REDIS_URL`, else a server of our own on a free port. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const redis = await startRedis();
  project.provide('redisUrl' satisfies keyof ProvidedContext, redis.url);
  return () => redis.stop();
}
