import { Controller, Get, Inject, Logger } from '@nestjs/common';
import { afterEach, expect, it } from 'vitest';
import { explain } from '../../src/dashboard/top/explain.js';
import { PerfService } from '../../src/index.js';
import { closeApps } from '../fixtures/build-app.js';
import { startDashboard, terminal } from '../fixtures/dashboard.js';

afterEach(async () => {
  await closeApps();
  Logger.overrideLogger(false);
});

it('`explain` says what is known of a route, and what there is where it knows nothing', async () => {
  const { url, token } = await startDashboard('fastify', {});
  expect((await fetch(`${url}/nowhere`)).status).toBe(404);
  const shown = terminal();
  const first = await explain([url, 'no such thing', '--token', token], shown.kept);
  expect([first, shown.said.err]).toEqual([
    1,
    expect.stringMatching(/Nothing is known of "no such thing"\. There are: .+, verdict\.\n/),
  ]);
  const name = /There are: (.+?), /.exec(shown.said.err)![1]!;
  expect(await explain([url, name, '--token', token], shown.kept)).toBe(0);
  expect(shown.said.out).toMatch(new RegExp(`^# ${name.replaceAll(/[()*]/g, '\\$&')}`));
  expect(shown.said.out).toContain('Duration: mean ');
  expect(shown.said.out).toContain('Verify after the change:');
  expect(await explain([url, 'verdict', '--token', token], shown.kept)).toBe(0);
});

it('`explain` ends with 1 where the token is wrong or nobody answers, and with 2 where nothing is asked', async () => {
  const { url } = await startDashboard('fastify', {});
  const { said, kept } = terminal();
  expect(await explain([url, 'verdict', '--token', 'wrong'], kept)).toBe(1);
  expect(said.err).toContain('answers 401');
  expect(await explain(['http://127.0.0.1:1/perf', 'verdict'], kept)).toBe(1);
  expect(said.err).toContain('does not answer (');
  expect(await explain([url], kept)).toBe(2);
});

@Controller('orders')
class OrdersController {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}
  @Get(':id')
  async find() {
    for (let line = 0; line < 5; line++) await this.perf.timed('sql db:5432/shop', async () => line);
    return {};
  }
}

it('`explain` of a route has its calls, the N+1, the last hour, a request to send, and what to verify', async () => {
  const { url, token } = await startDashboard('fastify', { metadata: { controllers: [OrdersController] } });
  for (let i = 0; i < 3; i++) await fetch(`${url}/orders/${i}`);
  const { said, kept } = terminal();
  expect(await explain([url, 'GET /orders/:id', '--token', token], kept)).toBe(0);
  expect(said.out).toMatch(
    /^# GET \/orders\/:id \(OrdersController\.find\)\n\nPod \S+, release \S+, since it started at \S+Z: 3 requests, 0 failed\.\n/,
  );
  expect(said.out).toMatch(/\nCalls of one request:\n- sql db:5432\/shop: 5\.0 calls, .* ms, an N\+1 /);
  expect(said.out).toMatch(/\nThe last hour:\n- \S+Z: \d+\.\d requests\/s, 0\.0 errors\/s, p95 /);
  expect(said.out).toContain(`curl -X GET '${url}/orders/:id'`);
  expect(said.out).toContain(
    'expectWork(app, { get: "/orders/:id" }, { upstream: { "sql db:5432/shop": { atMost: 2 } } })',
  );
});
