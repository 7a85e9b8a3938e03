import { Controller, Get, Param, ServiceUnavailableException } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { statsigSink, type StatsigSinkOptions } from '../../src/entries/statsig.js';
import { either, startApp, type TestApp } from '../fixtures/app.js';
import { StatsigLoopback } from '../fixtures/statsig-server.js';

@Controller('users')
class UsersController {
  @Get(':id')
  find(@Param('id') id: string) {
    if (id === 'down') throw new ServiceUnavailableException();
    const startedMs = performance.now();
    while (id === 'block' && performance.now() - startedMs < 120);
    return { id };
  }
}

let statsig: StatsigLoopback;
beforeEach(async () => {
  statsig = await new StatsigLoopback().start();
});
afterEach(() => statsig.stop());

/** Records come to sinks in batches, so each look at them flushes first. */
async function settleUntil(running: TestApp, reached: () => boolean): Promise<void> {
  await expect
    .poll(async () => {
      await running.requests();
      return reached();
    })
    .toBe(true);
}

describe.each(either('fastify'))('statsigSink on %s, with the real SDK', (adapter) => {
  const start = (options: Partial<StatsigSinkOptions> = {}, flushTimeoutMs = 20_000): Promise<TestApp> =>
    startApp(adapter, {
      perf: { sinks: [statsigSink({ client: statsig.client(), pod: 'pod-1', ...options })], flushTimeoutMs },
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

  it('sends a block with its culprit, its cause and its line', async () => {
    const running = await startApp(adapter, {
      perf: { eventLoop: true, sinks: [statsigSink({ client: statsig.client(), pod: 'pod-1' })] },
      metadata: { controllers: [UsersController] },
    });
    await (await fetch(`${running.url}/users/block`)).text();
    await running.close();
    const blocks = running.sink.records.filter((record) => record.kind === 'block');
    expect(blocks.length).toBeGreaterThan(0);
    expect(statsig.events('event_loop_block').map(({ value, metadata }) => ({ value, ...metadata }))).toEqual(
      blocks.map(({ durationMs, request, cause, location }) => ({
        value: durationMs,
        route: request?.route ?? null,
        cause,
        location: location === null ? null : expect.stringMatching(/statsig\.test\.ts:\d+:\d+$/),
        pod: 'pod-1',
      })),
    );
  });

  it('rolls requests up: the sums are those of the requests', async () => {
    const running = await start({ requests: 'rollup' });
    await traffic(running);
    const records = await running.requests();
    await running.close();
    // A slow machine may end an interval in between: then two events of a route and a status class add up.
    const rows = new Map<string, { count: number; sum: number; sumSquares: number }>();
    for (const { value, metadata } of statsig.events('api_request')) {
      const [count, sum, sumSquares] = ['count', 'sum', 'sumSquares'].map((name) => Number(metadata[name]));
      expect(value).toBeCloseTo(sum! / count!, 6);
      const key = `${metadata['route']} ${metadata['status']}`;
      const row = rows.get(key) ?? { count: 0, sum: 0, sumSquares: 0 };
      rows.set(key, { count: row.count + count!, sum: row.sum + sum!, sumSquares: row.sumSquares + sumSquares! });
    }
    expect([...rows].map(([key, { count }]) => `${key} ${count}`).sort()).toEqual([
      ' 4xx 30',
      '/users/:id 2xx 40',
      '/users/:id 5xx 10',
    ]);
    for (const [key, { sum, sumSquares }] of rows) {
      const durations = records
        .filter(({ route, status }) => key === `${route} ${String(status)[0]}xx`)
        .map(({ durationMs }) => durationMs);
      expect(sum).toBeCloseTo(
        durations.reduce((a, b) => a + b, 0),
        6,
      );
      expect(sumSquares).toBeCloseTo(
        durations.reduce((a, b) => a + b * b, 0),
        4,
      );
    }
  });

  it('ends its intervals with the resource samples: figures of the pod, and sums that stay whole', async () => {
    const running = await startApp(adapter, {
      perf: {
        sinks: [statsigSink({ client: statsig.client(), pod: 'pod-1', requests: 'rollup' })],
        resources: { intervalMs: 50 },
      },
      metadata: { controllers: [UsersController] },
    });
    const samples = (): number => running.sink.records.filter(({ kind }) => kind === 'resource').length;
    await traffic(running);
    await settleUntil(running, () => samples() >= 2);
    await traffic(running);
    await running.close();
    const rollups = statsig.events('api_request').filter(({ metadata }) => metadata['status'] === '2xx');
    expect(rollups.length).toBeGreaterThanOrEqual(2);
    expect(rollups.reduce((sum, { metadata }) => sum + Number(metadata['count']), 0)).toBe(80);
    const pods = statsig.events('pod_resources');
    expect(pods).toHaveLength(samples());
    expect(pods.every(({ user }) => user.userID === 'pod-1')).toBe(true);
    const [last] = running.sink.records.filter((record) => record.kind === 'resource').slice(-1);
    expect(pods.at(-1)).toMatchObject({
      value: last!.sample.cpu.window?.usageCores ?? null,
      metadata: { rssBytes: last!.sample.process.rssBytes, heapUsedBytes: last!.sample.process.heapUsedBytes },
    });
  });

  it.each(['error', 'hang'] as const)(
    'leaves requests alone and closes in time when Statsig is on "%s"',
    async (ingest) => {
      statsig.ingest = ingest;
      const running = await start({}, 300);
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
