import { Controller, Get, Logger, ServiceUnavailableException } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { pageAssets } from '../../src/dashboard/page-assets.js';
import type { PerfModuleOptions } from '../../src/index.js';
import { type Adapter, adapterOf, either } from '../fixtures/app.js';
import { closeApps, listeningApp, recordsOf, type BuildOptions } from '../fixtures/build-app.js';
import { dataOf, startDashboard, textOf, tokenIn } from '../fixtures/dashboard.js';
import { Lines } from '../fixtures/lines.js';
import { until } from '../fixtures/until.js';

@Controller('users')
class UsersController {
  @Get(':id')
  one() {
    return { name: 'Ada' };
  }
  @Get(':id/broken')
  broken(): never {
    throw new ServiceUnavailableException();
  }
  @Get()
  list() {
    return [];
  }
}
const metadata = { controllers: [UsersController] };
const HTML = { accept: 'text/html' };

afterEach(async () => {
  vi.restoreAllMocks();
  await closeApps();
  Logger.overrideLogger(false);
});

const start = (adapter: Adapter, options: BuildOptions = {}) => startDashboard(adapter, { metadata, ...options });

describe.each(either('express'))('answers of the dashboard on %s', (adapter) => {
  it('are whole, and never tell of the page itself', async () => {
    const running = await start(adapter);
    const { url, token } = running;
    await fetch(`${url}/users/7`);
    await recordsOf(running, 1);
    const first = await dataOf(url, token);
    expect(first).toMatchObject({
      totals: { count: 1, errors: 0, routes: 1 },
      overMs: [1_000, 2_000, 5_000],
    });
    expect(first.routes).toMatchObject([{ name: 'GET /users/:id', handler: 'UsersController.one', count: 1 }]);
    expect(first.process.release).toMatch(/./);
    await fetch(`${url}/users`);
    let next = first;
    await until('a new sample', async () => {
      next = await dataOf(url, token, '?since=whatever');
      return next.routes.length > 1;
    });
    const counts = Object.fromEntries(next.routes.map(({ name, count }) => [name, count]));
    expect([counts, next.totals!.routes]).toEqual([{ 'GET /users/:id': 1, 'GET /users': 1 }, 2]);
    const detail = (await dataOf(url, token, `?route=${encodeURIComponent(first.routes[0]!.id)}`)).detail!;
    expect([detail.row.name, detail.statuses['2xx']]).toEqual(['GET /users/:id', 1]);
    expect(detail.distribution.reduce((sum, { count }) => sum + count, 0)).toBe(1);
    expect((await recordsOf(running, 2)).map(({ route }) => route)).toEqual(['/users/:id', '/users']);
  });

  it.each([true, false])('tell at the first look what has failed before it, with `history: %s`', async (history) => {
    const running = await start(adapter, { perf: { history } });
    const { url, token } = running;
    for (let i = 0; i < 5; i++) await fetch(`${url}/users/7/broken`);
    await fetch(`${url}/users/7`);
    await recordsOf(running, 6);
    const text = await textOf(url, token);
    // A busy machine may block the loop as well.
    expect(text).toMatch(/^NOW\n(! .+\n)*?! GET \/users\/:id\/broken failed 5 of 5 times in the last \d+ (s|min)\.$/m);
    if (history) expect(text).toMatch(/^\d+(\.\d)? requests\/s · \d+(\.\d)? errors\/s/m);
    const { sections } = await dataOf(url, token);
    expect(sections.now.map(({ text: told }) => told).join('\n')).toMatch(
      /^GET \/users\/:id\/broken failed 5 of 5 times/m,
    );
  });

  it('have a policy of their own, whatever the application sets, and no inline code', async () => {
    const { url, token } = await start(adapter, {
      beforeInit: (app) => {
        app.use((_: unknown, response: { setHeader(name: string, value: string): void }, next: () => void) => {
          response.setHeader('content-security-policy', "script-src 'unsafe-inline'; upgrade-insecure-requests");
          next();
        });
      },
    });
    const headers = { ...HTML, authorization: `Bearer ${token}` };
    const page = await fetch(`${url}/perf/`, { headers });
    const policy = page.headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'");
    expect(policy).not.toContain('unsafe');
    const html = await page.text();
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style|style=|\son\w+=|(?:src|href)="\/|https?:/);
    for (const [, name] of html.matchAll(/(?:src|href)="(app-[^"]+)"/g)) {
      const asset = await fetch(`${url}/perf/${name}`, { headers: { 'accept-encoding': 'br' } });
      expect([asset.status, asset.headers.get('content-encoding')]).toEqual([200, 'br']);
      expect(asset.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      const text = await asset.text();
      for (const accepted of ['identity', 'gzip, br;q=0', 'br; q=0.000']) {
        const plain = await fetch(`${url}/perf/${name}`, { headers: { 'accept-encoding': accepted } });
        expect([accepted, plain.headers.get('content-encoding')]).not.toContain('br');
        expect(await plain.text()).toBe(text);
      }
    }
    const polled = await fetch(`${url}/perf/data`, { headers: { ...headers, 'accept-encoding': 'br, gzip' } });
    expect(polled.headers.get('cache-control')).toBe('no-store');
    expect([(await polled.text()).length > 1_024, polled.headers.get('content-encoding')]).toEqual([true, 'br']);
  });

  it('stand outside the global prefix, at the path that is asked for, and ask `authorize` instead of a token', async () => {
    const asked: string[] = [];
    const authorize = (request: { headers: Record<string, unknown>; url: string }): boolean => {
      asked.push(request.url);
      if (request.headers['x-key'] === 'boom') throw new Error('secret detail');
      return request.headers['x-key'] === 'k1';
    };
    const lines = new Lines();
    const { url } = await listeningApp(adapterOf(adapter), {
      metadata,
      perf: { dashboard: { path: '/ops/perf', authorize } },
      nest: { logger: lines },
      beforeInit: (app) => void app.setGlobalPrefix('api'),
    });
    expect(lines.all).toContain(`Perf dashboard: ${url}/ops/perf`);
    const ask = async (path: string, key: string) =>
      fetch(url + path, { headers: { ...HTML, 'x-key': key }, redirect: 'manual' });
    expect((await ask('/ops/perf/', 'k1')).status).toBe(200);
    expect((await ask('/ops/perf', 'k1')).headers.get('location')).toBe('perf/');
    expect((await ask('/ops/perf/data', 'k2')).status).toBe(403);
    expect((await ask('/api/ops/perf/', 'k1')).status).toBe(404);
    const failed = await ask('/ops/perf/', 'boom');
    expect([failed.status, await failed.text()]).toEqual([500, 'Internal Server Error\n']);
    expect(asked).toContain('/ops/perf/data');
  });
});

describe('answers of the dashboard, in which the framework has no part,', () => {
  it.each([-3_600_000, -1_900, 60_000])('have true rates when the wall clock is set by %i ms', async (stepMs) => {
    const { url, token } = await start('fastify');
    const first = await dataOf(url, token);
    const now = Date.now;
    vi.spyOn(Date, 'now').mockImplementation(() => now() + stepMs);
    for (let i = 0; i < 30; i++) await fetch(`${url}/users/7`);
    let next = first;
    await until('a new sample', async () => {
      next = await dataOf(url, token);
      return next.at !== first.at;
    });
    // No point is later than now.
    expect(Math.max(...next.traffic.map(([at]) => at))).toBe(next.at);
    expect(next.at - next.process.startedAt).toBeLessThan(performance.now() + 1_000);
    expect(next.at).toBeGreaterThan(next.process.startedAt);
    // Samples are at least 1.5 s apart.
    const perSecond = next.traffic.at(-1)![1]!;
    expect(perSecond).toBeGreaterThan(0);
    expect(perSecond).toBeLessThanOrEqual(30 / 1.5);
  });
});

it('two applications have tokens and figures of their own', async () => {
  const one = await start('fastify');
  const two = await start('express');
  await fetch(`${one.url}/users/7`);
  await recordsOf(one, 1);
  await expect(dataOf(two.url, one.token)).rejects.toThrow('401');
  expect((await dataOf(two.url, two.token)).totals!.count).toBe(0);
  expect((await dataOf(one.url, one.token)).totals!.count).toBe(1);
});

it('works where Fastify takes no notice of slashes at the end', async () => {
  const lines = new Lines();
  const { url } = await listeningApp(new FastifyAdapter({ routerOptions: { ignoreTrailingSlash: true } }) as never, {
    metadata,
    perf: { dashboard: true },
    nest: { logger: lines },
  });
  const headers = { ...HTML, authorization: `Bearer ${tokenIn(lines.all)}` };
  expect((await fetch(`${url}/perf/`, { headers })).status).toBe(200);
});

it('needs at most 45 KB', () => {
  const bytes = [pageAssets.script, pageAssets.style].map(({ brotli }) => Buffer.from(brotli, 'base64').length);
  expect(bytes[0]! + bytes[1]!).toBeLessThanOrEqual(45 * 1_024);
});

it.each([
  [{ path: 'perf' }, '`dashboard.path` must be a path such as `/perf`'],
  [{ path: '/perf/' }, '`dashboard.path` must be a path such as `/perf`'],
  [
    { authorize: true },
    '`dashboard.authorize` must be a function of the request that answers with a boolean, got `true`',
  ],
  [{ tokenTtlMs: 0 }, '`dashboard.tokenTtlMs` must be a number of milliseconds above 0, got `0`'],
  [{ token: 'x' }, '`dashboard.token` must be a text of at least 16 characters, got 1 character.'],
  [{ tokens: 'x' }, '`dashboard.tokens` is not an option. Known options: '],
  ['yes', '`dashboard` must be `true`, `false` or an object, got `"yes"`'],
])('refuses %j at boot', async (dashboard, message) => {
  const perf = { dashboard } as unknown as PerfModuleOptions;
  await expect(listeningApp(adapterOf('fastify'), { metadata, perf })).rejects.toThrow(`PERF_ERR_OPTION: ${message}`);
});
