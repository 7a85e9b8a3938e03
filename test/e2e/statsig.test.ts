import { Controller, Get, Param, ServiceUnavailableException } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { statsigSink } from '../../src/entries/statsig.js';
import { startApp, type TestApp } from '../fixtures/app.js';
import { StatsigLoopback } from '../fixtures/statsig-server.js';

@Controller('users')
class UsersController {
  @Get(':id')
  find(@Param('id') id: string) {
    if (id === 'down') throw new ServiceUnavailableException();
    return { id };
  }
}

let statsig: StatsigLoopback;
beforeEach(async () => {
  statsig = await new StatsigLoopback().start();
});
afterEach(() => statsig.stop());

describe('statsigSink in an application, with the real SDK', () => {
  const start = (flushTimeoutMs = 20_000): Promise<TestApp> =>
    startApp('fastify', {
      perf: { sinks: [statsigSink({ client: statsig.client(), pod: 'pod-1' })], flushTimeoutMs },
      metadata: { controllers: [UsersController] },
    });
  /** 40 of one route, 10 failing, 30 unmatched; returns the statuses the clients saw. */
  const traffic = async (running: TestApp): Promise<number[]> => {
    const paths = Array.from({ length: 80 }, (_, i) => (i < 40 ? `/users/${i}` : i < 50 ? '/users/down' : `/x${i}`));
    return Promise.all(
      paths.map(async (path) => {
        const response = await fetch(`${running.url}${path}`);
        await response.text();
        return response.status;
      }),
    );
  };

  it('sends one event per request: what arrives is what was measured, the last interval included', async () => {
    const running = await start();
    await traffic(running);
    const records = await running.requests();
    await traffic(running);
    await running.close();
    const events = statsig.events('api_request');
    expect(events).toHaveLength(160);
    const count = (status: number): number => events.filter(({ metadata }) => metadata['status'] === status).length;
    expect([count(200), count(503), count(404)]).toEqual([80, 20, 60]);
    const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
    expect(sum(events.slice(0, 80).map(({ value }) => value!))).toBeCloseTo(sum(records.map((r) => r.durationMs)), 6);
    expect(events.find(({ metadata }) => metadata['route'] === '/users/:id')).toMatchObject({
      user: { userID: 'pod-1' },
      metadata: { method: 'GET', handler: 'UsersController.find', outcome: 'completed', pod: 'pod-1' },
    });
    const latency = statsig.events('pod_latency');
    expect(sum(latency.map(({ metadata }) => Number(metadata['count'])))).toBe(80);
  });

  it.each(['error', 'hang'] as const)(
    'leaves requests alone and closes in time when Statsig is on "%s"',
    async (ingest) => {
      statsig.ingest = ingest;
      const running = await start(300);
      const statuses = [...(await traffic(running)), ...(await traffic(running))];
      expect(statuses.filter((status) => status === 200)).toHaveLength(80);
      const startedMs = performance.now();
      await running.close();
      // Less than the five seconds that it would have by default.
      expect(performance.now() - startedMs).toBeLessThan(4_000);
    },
  );

  it('loses nothing of the last interval when Statsig is slow but there', async () => {
    const running = await start();
    await traffic(running);
    statsig.delayMs = 150;
    await running.close();
    expect(statsig.events('api_request')).toHaveLength(80);
  });
});
