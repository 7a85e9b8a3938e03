import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Controller, Get, type INestApplication, Logger, ServiceUnavailableException } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { pageAssets } from '../../src/dashboard/page-assets.js';
import { top, type Terminal } from '../../src/dashboard/top/top.js';
import { HISTORY } from '../../src/core/history.js';
import type { Assessment } from '../../src/history/verdicts/assess.js';
import { METRICS } from '../../src/history/verdicts/metrics.js';
import { openedText } from '../../src/history/verdicts/text.js';
import type { PerfModuleOptions } from '../../src/index.js';
import { PerfRuntime } from '../../src/perf.runtime.js';
import { adapterOf, adapters } from '../fixtures/app.js';
import { closeApps, listeningApp, recordsOf, type BuildOptions } from '../fixtures/build-app.js';
import { dataOf, tokenIn } from '../fixtures/dashboard.js';
import { Lines } from '../fixtures/lines.js';
import { verdictRecord } from '../fixtures/records.js';
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

async function start(adapter: (typeof adapters)[number], options: BuildOptions = {}) {
  const lines = new Lines();
  const perf = { dashboard: true, ...options.perf };
  const built = await listeningApp(adapterOf(adapter), { metadata, ...options, perf, nest: { logger: lines } });
  return { ...built, lines, token: tokenIn(lines.all) };
}

/** A verdict of one user, as a history would tell it. */
function slowFor(app: INestApplication, name: string): void {
  const moved = [{ route: 'GET /users/:id', rule: METRICS[1]!, before: 5, now: 7 }] as unknown as readonly Assessment[];
  const scope = { scope: 'users', name, detail: '1 of 214' } as const;
  const text = openedText({ kind: 'worse', since: 0, scope, moved, because: [], against: 'day', release: null });
  const { requests } = app.get(PerfRuntime, { strict: false });
  const verdicts = () => [verdictRecord({ scope: 'users', text }).verdict];
  HISTORY.set(requests, Object.assign(Object.create(HISTORY.get(requests)), { verdicts }));
}

/** A terminal that keeps what is written on it. */
function terminal(signal = new AbortController().signal) {
  const said = { out: '', err: '' };
  const kept: Terminal = {
    write: (text) => (said.out += text),
    complain: (text) => (said.err += text),
    rows: () => null,
    token: undefined,
    signal,
  };
  return { said, kept };
}

describe.each(adapters)('answers of the dashboard on %s', (adapter) => {
  it('are whole at first, then what has changed, and never tell of the page itself', async () => {
    const running = await start(adapter);
    const { url, token } = running;
    await fetch(`${url}/users/7`);
    await recordsOf(running, 1);
    const first = await dataOf(url, token);
    expect(first).toMatchObject({
      whole: true,
      totals: { count: 1, errors: 0, routes: 1 },
      overMs: [1_000, 2_000, 5_000],
    });
    expect(first.routes).toMatchObject([{ name: 'GET /users/:id', handler: 'UsersController.one', count: 1 }]);
    expect(first.process.release).toMatch(/./);
    expect(await dataOf(url, token, `?since=${first.cursor}`)).toMatchObject({ whole: false, routes: [], gone: [] });
    await fetch(`${url}/users`);
    let next = first;
    await until('a new sample', async () => {
      next = await dataOf(url, token, `?since=${first.cursor}`);
      return next.routes.length > 0;
    });
    expect(next).toMatchObject({ whole: false, routes: [{ name: 'GET /users', count: 1 }], totals: { routes: 2 } });
    expect(Object.keys(next.sections)).not.toContain('experiments');
    // Of another process, or no cursor at all.
    for (const since of ['abc.1.1', 'x', '1.2.3'])
      expect((await dataOf(url, token, `?since=${since}`)).whole).toBe(true);
    const detail = (await dataOf(url, token, `?route=${first.routes[0]!.id}`)).detail!;
    expect(detail.statuses['2xx']).toBe(1);
    expect(detail.distribution.reduce((sum, { count }) => sum + count, 0)).toBe(1);
    expect((await dataOf(url, token, '?filter=USERS/')).found).toMatchObject([{ name: 'GET /users/:id' }]);
    expect((await recordsOf(running, 2)).map(({ route }) => route)).toEqual(['/users/:id', '/users']);
  });

  it.each([true, false])('tell at the first look what has failed before it, with `history: %s`', async (history) => {
    const running = await start(adapter, { perf: { history } });
    const { url, token } = running;
    for (let i = 0; i < 5; i++) await fetch(`${url}/users/7/broken`);
    await fetch(`${url}/users/7`);
    await recordsOf(running, 6);
    const authorization = `Bearer ${token}`;
    const text = await (await fetch(`${url}/perf`, { headers: { accept: 'text/plain', authorization } })).text();
    expect(text).toMatch(/^NOW\n! GET \/users\/:id\/broken failed 5 of 5 times in the last \d+ (s|min)\.$/m);
    if (history) expect(text).toMatch(/^\d+(\.\d)? requests\/s · \d+(\.\d)? errors\/s/m);
    const { sections, routes } = await dataOf(url, token);
    // A busy machine may block the loop as well.
    expect(sections.now![0]!.text).toMatch(/^GET \/users\/:id\/broken failed 5 of 5 times/);
    // What was before is in no sample.
    expect(routes.map(({ recent }) => recent)).toEqual([undefined, undefined]);
  });

  it.each([-3_600_000, -1_900, 60_000])('have true rates when the wall clock is set by %i ms', async (stepMs) => {
    const { url, token } = await start(adapter);
    const first = await dataOf(url, token);
    const now = Date.now;
    vi.spyOn(Date, 'now').mockImplementation(() => now() + stepMs);
    for (let i = 0; i < 30; i++) await fetch(`${url}/users/7`);
    let next = first;
    await until('a new sample', async () => {
      next = await dataOf(url, token, `?since=${first.cursor}`);
      return next.at !== first.at;
    });
    // Of a time to come: the page begins anew, and knows no point that is later than now.
    expect(next.whole).toBe(next.at < first.at);
    expect(next.traffic.map(([at]) => at)).toEqual([next.at]);
    expect(next.at - next.process.startedAt).toBeLessThan(performance.now() + 1_000);
    expect(next.at).toBeGreaterThan(next.process.startedAt);
    // Samples are at least 1.5 s apart.
    const perSecond = next.traffic.at(-1)![1]!;
    expect(perSecond).toBeGreaterThan(0);
    expect(perSecond).toBeLessThanOrEqual(30 / 1.5);
  });

  it('say what is off, and do not take what is not measured for nothing', async () => {
    const { url, token } = await start(adapter, { perf: { latency: false, eventLoop: false } });
    for (let i = 0; i < 5; i++) await fetch(`${url}/users/7/broken`);
    const authorization = `Bearer ${token}`;
    const text = await (await fetch(`${url}/perf`, { headers: { accept: 'text/plain', authorization } })).text();
    expect(text).toMatch(/^– requests\/s · – errors\/s · p95 –$/m);
    expect(text).toMatch(/^NOW\nNothing is known to be wrong\.$/m);
    expect(text).toMatch(/^REQUESTS\noff$/m);
    expect(text).toMatch(/^BLOCKS\noff$/m);
    expect((await dataOf(url, token)).totals).toBeNull();
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
    expect(polled.headers.get('cache-control')).toBe('no-store, no-transform');
    expect([(await polled.text()).length > 1_024, polled.headers.get('content-encoding')]).toEqual([true, null]);
  });

  it('are text for terminals, on which names cannot act', async () => {
    const running = await start(adapter, { perf: { unit: () => ({ userId: '\u001b[31mred\u009b' }) } });
    await fetch(`${running.url}/users/7`);
    await recordsOf(running, 1);
    const authorization = `Bearer ${running.token}`;
    for (const headers of [{ accept: 'text/plain' }, { accept: '*/*', 'user-agent': 'curl/8.5.0' }]) {
      const response = await fetch(`${running.url}/perf`, { headers: { ...headers, authorization } });
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
      const text = await response.text();
      expect(text).toMatch(/^NOW\nNothing is wrong\.|^NOW\n[!-] /m);
      expect(text).toMatch(/^route +count .*\nGET \/users\/:id +1 /m);
      expect(text).toContain('\\u001b[31mred\\u009b');
      // oxlint-disable-next-line no-control-regex
      expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    }
  });

  it('give their JSON as text too, to who asks for text alone', async () => {
    const { url, token } = await start(adapter);
    const typeFor = async (headers: Record<string, string>): Promise<string | null> =>
      (await fetch(`${url}/perf/data`, { headers: { ...headers, authorization: `Bearer ${token}` } })).headers.get(
        'content-type',
      );
    expect(await typeFor({ accept: 'text/plain' })).toBe('text/plain; charset=utf-8');
    for (const headers of [
      { accept: '*/*', 'user-agent': 'curl/8.5.0' },
      { accept: 'application/json, text/plain, */*' },
    ])
      expect(await typeFor(headers)).toBe('application/json; charset=utf-8');
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

  it('serve eight viewers at a time', async () => {
    const { url, token } = await start(adapter);
    for (let i = 0; i < 8; i++) await dataOf(url, token, `?viewer=v${i}`);
    await expect(dataOf(url, token, '?viewer=v8')).rejects.toThrow('429: Too many viewers');
    await dataOf(url, token, '?viewer=v0');
  });

  it('hide user ids where that is asked for', async () => {
    const dashboard = { redactUsers: true };
    const running = await start(adapter, { perf: { dashboard, unit: () => ({ userId: 'ada@example.org' }) } });
    slowFor(running.app, 'ada@example.org');
    await fetch(`${running.url}/users/7`);
    await recordsOf(running, 1);
    const data = await dataOf(running.url, running.token, '?route=1');
    expect(data.sections.users).toMatchObject([{ unit: expect.stringMatching(/^[0-9a-f]{16}$/), count: 1 }]);
    expect(JSON.stringify(data)).not.toContain('ada@example.org');
    expect(data.sections.now![0]!.text).toContain(`; for user ${data.sections.users![0]!.unit} (1 of 214).`);
    const headers = { accept: 'text/plain', authorization: `Bearer ${running.token}` };
    const text = await (await fetch(`${running.url}/perf`, { headers })).text();
    expect(text).toContain('for user ');
    expect(text).not.toContain('ada@example.org');
  });

  it('come to `nestjs-perf top`, which says what is wrong with its address or token', async () => {
    const { url, token } = await start(adapter);
    const { said, kept } = terminal();
    expect(await top(['top', `${url}/perf?token=${token}`, '--once'], kept)).toBe(0);
    expect(said.out).toMatch(/^NOW$[\s\S]*^REQUESTS$/m);
    expect(await top(['top', url, '--token', 'wrong', '--once'], kept)).toBe(1);
    expect(said.err).toContain(`${url}/perf/ answers 401. Unauthorized: the token stands in the log`);
    const away = terminal();
    expect(await top(['top', 'http://127.0.0.1:1/perf', '--once'], away.kept)).toBe(1);
    expect(away.said.err).toMatch(/does not answer \(.+\)\.\n$/);
    expect(await top(['top', 'ftp://x'], away.kept)).toBe(2);
    expect(await top(['--help'], away.kept)).toBe(0);
    const stopped = new AbortController();
    const again = terminal(stopped.signal);
    const watching = top(['top', url, '--token', token, '--interval', '0.5'], again.kept);
    await until('two looks', () => again.said.out.split('\nNOW\n').length > 2);
    stopped.abort();
    expect(await watching).toBe(0);
  });

  it.each([['--once'], ['--interval', '0.5']])(
    'come to `nestjs-perf top %s`, which ends when nobody reads',
    async (...how) => {
      const { url, token } = await start(adapter);
      const child = spawn('node', ['build/src/dashboard/top/main.js', 'top', url, '--token', token, ...how]);
      child.stdout.destroy();
      let complaints = '';
      child.stderr.on('data', (data) => (complaints += String(data)));
      expect([await once(child, 'close'), complaints]).toEqual([[0, null], '']);
    },
  );
});

it('`top` has a screen of its own, on which no line wraps, and complains when it has left that', async () => {
  const { url } = await start('fastify');
  const written: string[] = [];
  const write = (text: string): void => void written.push(text);
  const screen = { ...terminal().kept, write, complain: write, rows: () => 24 };
  expect(await top(['top', url, '--token', 'wrong'], screen)).toBe(1);
  expect(written.at(-1)).toMatch(/answers 401\. Unauthorized/);
  expect(written.at(-2)).toBe('\u001b[?7h\u001b[?25h\u001b[?1049l');
  expect(written[0]).toBe('\u001b[?1049h\u001b[?25l\u001b[?7l');
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
  [{ token: 'x' }, '`dashboard.token` is not an option. Did you mean `dashboard.tokenTtlMs`?'],
  ['yes', '`dashboard` must be `true`, `false` or an object, got `"yes"`'],
])('refuses %j at boot', async (dashboard, message) => {
  const perf = { dashboard } as unknown as PerfModuleOptions;
  await expect(listeningApp(adapterOf('fastify'), { metadata, perf })).rejects.toThrow(`PERF_ERR_OPTION: ${message}`);
});
