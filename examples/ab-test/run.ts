import { setTimeout as delay } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import { Experiments, type ExperimentReport, type GateClient } from 'nestjs-perf';
import { settle } from 'nestjs-perf/testing';
import { buildShop, UserGuard } from './shop.module.js';

const USERS = 120;
const AT_ONCE = 12;

/**
 * Starts the shop, lets 120 users open it again and again for `seconds`, and asks whether the gate made it faster.
 */
export async function runExperiment(seconds: number, gates: GateClient): Promise<ExperimentReport> {
  const app = await NestFactory.create(buildShop(gates), { logger: ['warn', 'error'] });
  app.useGlobalGuards(app.get(UserGuard));
  await app.listen(0, '127.0.0.1');
  try {
    await visit(`${await app.getUrl()}/v1`, seconds);
    await settle(app);
    return app.get(Experiments).report('skip_async_cleanup', { route: 'GET /v1/initialize' });
  } finally {
    await app.close();
  }
}

async function visit(url: string, seconds: number): Promise<void> {
  const endsAt = performance.now() + seconds * 1_000;
  let next = 0;
  const visitor = async (): Promise<void> => {
    while (performance.now() < endsAt) {
      const headers = { 'x-user': `user-${next++ % USERS}` };
      await (await fetch(`${url}/initialize`, { headers })).arrayBuffer();
      await (await fetch(`${url}/prices`, { headers })).arrayBuffer();
      await delay(Math.random() * 20);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, visitor));
}
