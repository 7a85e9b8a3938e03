import { Controller, Get, Logger } from '@nestjs/common';
import { afterEach, expect, it } from 'vitest';
import { profile } from '../../src/dashboard/top/profile.js';
import { closeApps, type BuildOptions } from '../fixtures/build-app.js';
import { startDashboard, terminal } from '../fixtures/dashboard.js';
import { until } from '../fixtures/until.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

@Controller('reports')
class ReportsController {
  @Get(':id')
  one() {
    return { total: this.addUp(100) };
  }

  private addUp(ms: number): number {
    let total = 0;
    for (const end = performance.now() + ms; performance.now() < end;) total += Math.sqrt(total + 1);
    return total;
  }
}

const NAME = 'GET /reports/:id';

afterEach(async () => {
  await closeApps();
  Logger.overrideLogger(false);
});

const start = (perf: BuildOptions['perf'] = {}) =>
  startDashboard('fastify', { metadata: { controllers: [ReportsController] }, perf });

it('`nestjs-perf profile` writes the stacks of a route, and says what is wrong with its arguments', async () => {
  const { url, token } = await start();
  const shown = terminal();
  await until('a sample of the function', async () => {
    await (await fetch(`${url}/reports/7`)).text();
    shown.said.out = '';
    expect(await profile([url, '--token', token, '--route', NAME], shown.kept)).toBe(0);
    return shown.said.out.includes('addUp');
  });
  const { nodes, samples } = JSON.parse(shown.said.out) as { nodes: { callFrame: object }[]; samples: number[] };
  expect(samples.length).toBeGreaterThan(0);
  expect(nodes.map(({ callFrame }) => callFrame)).toContainEqual(expect.objectContaining({ functionName: NAME }));
  const next = terminal();
  expect(await profile([url, '--token', token, '--seconds', '1'], next.kept)).toBe(0);
  expect(JSON.parse(next.said.out)).toHaveProperty('startTime');
  const wrong = terminal();
  expect(await profile([url, '--token', 'wrong'], wrong.kept)).toBe(1);
  expect(wrong.said.err).toContain('answers 401');
  expect(await profile([url, '--seconds', '301'], wrong.kept)).toBe(2);
  expect(await profile([], wrong.kept)).toBe(2);
  expect(await profile(['--help'], wrong.kept)).toBe(0);
  const given = { headers: { authorization: `Bearer ${token}` } };
  expect((await fetch(`${url}/perf/profile?seconds=0`, given)).status).toBe(400);
});

it('without samples the command says what to set', async () => {
  const { url, token } = await start({ eventLoop: { profile: false } });
  const { said, kept } = terminal();
  expect(await profile([url, '--token', token], kept)).toBe(1);
  expect(said.err).toContain('answers 404. Stacks are not sampled: set `eventLoop: { profile: true }`.');
});
