import { type CanActivate, Controller, Get, Injectable, Param } from '@nestjs/common';
import { APP_GUARD, ModulesContainer } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import { PerfService, type PerfSink } from '../../src/index.js';
import { prometheusSink } from '../../src/entries/prometheus.js';
import { either, startApp, type TestApp } from '../fixtures/app.js';
import { parseExposition, samplesOf, valueOf, type Family } from '../fixtures/exposition.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

@Injectable()
class NobodyGuard implements CanActivate {
  canActivate(): boolean {
    return false;
  }
}

class Gate {
  open: () => void = () => {};
  readonly passed = new Promise<void>((resolve) => {
    this.open = resolve;
  });
}
let gate = new Gate();

@Controller('users')
class UsersController {
  @Get(':id')
  find(@Param('id') id: string) {
    return { id };
  }
}
@Controller('slow')
class SlowController {
  @Get()
  async wait() {
    await gate.passed;
    return 'done';
  }
}
@Controller('block')
class BlockController {
  @Get()
  block() {
    const startedMs = performance.now();
    while (performance.now() - startedMs < 120);
    return 'blocked';
  }
}
const controllers = [UsersController, SlowController, BlockController];

const scrape = async (running: TestApp): Promise<Map<string, Family>> => {
  const response = await fetch(`${running.url}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  return parseExposition(await response.text());
};
const COUNT = 'http_server_request_duration_seconds_count';
const users = { http_request_method: 'GET', http_route: '/users/:id', http_response_status_code: '200' };

describe.each(either('fastify'))('prometheusSink on %s', (adapter) => {
  const start = (sinks: PerfSink[] = [prometheusSink()], options: Parameters<typeof startApp>[1] = {}) =>
    startApp(adapter, { perf: { sinks }, metadata: { controllers }, ...options });
  const ask = async (running: TestApp, path: string): Promise<number> => {
    const response = await fetch(`${running.url}${path}`);
    await response.text();
    return response.status;
  };

  it('counts what the clients counted, and random URLs as one series', async () => {
    const running = await start();
    const statuses = new Map<number, number>();
    const paths = Array.from({ length: 60 }, (_, i) =>
      i < 20 ? `/users/${i}` : `/${Math.random().toString(36)}/${i}`,
    );
    for (const status of await Promise.all(paths.map((path) => ask(running, path)))) {
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    await running.requests();
    const families = await scrape(running);
    expect(samplesOf(families, COUNT)).toHaveLength(2);
    expect(valueOf(families, COUNT, users)).toBe(statuses.get(200));
    expect(valueOf(families, COUNT, { http_route: '', http_response_status_code: '404' })).toBe(statuses.get(404));
    const durations = (await running.requests()).filter((r) => r.route === '/users/:id').map((r) => r.durationMs);
    const sum = durations.reduce((a, b) => a + b, 0) / 1_000;
    expect(valueOf(families, 'http_server_request_duration_seconds_sum', users)).toBeCloseTo(sum, 9);
    await running.close();
  });

  it('is encoded, and in no figure of compression', async () => {
    const running = await start();
    for (const path of ['/users/7', '/nobody', '/metrics']) await ask(running, path);
    const { headers } = await fetch(`${running.url}/metrics`, { method: 'HEAD' });
    const response = await fetch(`${running.url}/metrics`);
    expect(response.headers.get('content-encoding')).not.toBeNull();
    expect(headers.get('vary')).toBe(response.headers.get('vary'));
    const families = parseExposition(await response.text());
    expect(valueOf(families, 'perf_compression_bytes_total', { direction: 'in' })).toBe(0);
    const none = { compressed: 0, cacheHits: 0, bytesIn: 0, bytesOut: 0, cacheBytes: 0 };
    expect(running.app.get(PerfService).snapshot().compression).toEqual({ responses: 2, ...none });
    await running.close();
  });

  it('is no request of its own: not recorded, not counted, not stopped by guards, outside the global prefix', async () => {
    const running = await start([prometheusSink()], {
      metadata: { controllers, providers: [{ provide: APP_GUARD, useClass: NobodyGuard }] },
      beforeInit: (app) => void app.setGlobalPrefix('api'),
    });
    expect(await ask(running, '/api/users/1')).toBe(403);
    await scrape(running);
    // What Swagger and every other explorer of Nest's goes through.
    const known = [...running.app.get(ModulesContainer).values()].flatMap((module) => [...module.controllers.keys()]);
    expect(known).toEqual(controllers);
    const records = await running.requests();
    expect(records.map(({ route, status }) => [route, status])).toEqual([['/api/users/:id', 403]]);
    expect(samplesOf(await scrape(running), COUNT).map(({ labels }) => labels['http_route'])).toEqual([
      '/api/users/:id',
    ]);
    await running.close();
  });

  it('lets `authorize` see the request, and answers 403 to others', async () => {
    const authorize = (request: unknown): boolean =>
      (request as { headers: Record<string, string> }).headers['authorization'] === 'Bearer scraper';
    const running = await start([prometheusSink({ path: '/internal/metrics', authorize })]);
    const url = `${running.url}/internal/metrics`;
    expect((await fetch(url)).status).toBe(403);
    expect((await fetch(url, { headers: { authorization: 'Bearer scraper' } })).status).toBe(200);
    expect(await ask(running, '/metrics')).toBe(404);
    await running.close();
  });

  it('shows requests in flight', async () => {
    gate = new Gate();
    const running = await start();
    const waiting = ask(running, '/slow');
    const active = async (): Promise<number> =>
      samplesOf(await scrape(running), 'http_server_active_requests').reduce((sum, { value }) => sum + value, 0);
    await expect.poll(active).toBe(1);
    gate.open();
    await waiting;
    await running.requests();
    expect(await active()).toBe(0);
    await running.close();
  });

  it("shows the container's figures as the snapshot knows them, and none with `resources: false`", async () => {
    const names = ['container_cpu_time_seconds_total', 'container_memory_working_set_bytes'];
    const running = await start();
    const families = await scrape(running);
    const { resources } = running.app.get(PerfService).snapshot();
    const known = [resources?.cpu.usageSeconds, resources?.memory.workingSetBytes].map((value) => value ?? null);
    const shown = names.map((name) => samplesOf(families, name)[0]?.value ?? null);
    // Two readings, moments apart: the same where nothing is known, else within a wide margin of each other.
    shown.forEach((value, index) => {
      if (known[index] === null) expect(value).toBeNull();
      else expect(value! / known[index]!).toBeCloseTo(1, 0);
    });
    await running.close();
    const without = await start([prometheusSink()], { perf: { sinks: [prometheusSink()], resources: false } });
    const off = await scrape(without);
    expect(names.flatMap((name) => samplesOf(off, name))).toEqual([]);
    await without.close();
  });

  it('counts blocks by culprit and cause as their records do', async () => {
    const running = await start();
    await ask(running, '/block');
    await running.requests();
    const families = await scrape(running);
    const blocks = running.sink.records.filter((record) => record.kind === 'block');
    expect(blocks.length).toBeGreaterThan(0);
    for (const { request, cause } of blocks) {
      const same = blocks.filter((block) => block.cause === cause && block.request?.route === request?.route);
      const labels = { http_route: request?.route ?? '', cause };
      expect(valueOf(families, 'perf_eventloop_blocks_total', labels)).toBe(same.length);
      const seconds = same.reduce((sum, { durationMs }) => sum + durationMs / 1_000, 0);
      expect(valueOf(families, 'perf_eventloop_blocked_seconds_total', labels)).toBeCloseTo(seconds, 9);
    }
    expect(valueOf(families, 'nodejs_eventloop_delay_seconds', { stat: 'max' })).toBeGreaterThan(0);
    await running.close();
  });
});
