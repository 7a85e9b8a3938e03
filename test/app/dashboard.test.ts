import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Controller, Get, Logger } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { adapterOf, adapters } from '../fixtures/app.js';
import { buildApp, closeApps, listeningApp, type BuildOptions } from '../fixtures/build-app.js';
import { dataOf, startDashboard, tokenIn } from '../fixtures/dashboard.js';
import { Lines } from '../fixtures/lines.js';
import { withEventLoop } from '../fixtures/usual.js';

withEventLoop();

@Controller('users')
class UsersController {
  @Get()
  list() {
    return [];
  }
}
const metadata = { controllers: [UsersController] };
const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

afterEach(async () => {
  await closeApps();
  Logger.overrideLogger(false);
});

describe.each(adapters)('the dashboard on %s', (adapter) => {
  const start = (perf: BuildOptions['perf'] = {}) => startDashboard(adapter, { metadata, perf });

  it('is not there unless it is asked for', async () => {
    const lines = new Lines();
    const { url } = await listeningApp(adapterOf(adapter), { metadata, nest: { logger: lines } });
    for (const path of ['/perf', '/perf/', '/perf/data']) expect((await fetch(url + path)).status).toBe(404);
    expect(lines.all.join()).not.toContain('dashboard');
  });

  it('tells its address with the token once, and lets nobody in without it', async () => {
    const { url, lines, token } = await start();
    expect(lines.all.filter((line) => line.includes(token))).toEqual([`Perf dashboard: ${url}/perf?token=${token}`]);
    for (const path of ['/perf', '/perf/', '/perf/data', '/perf/?token=wrong', '/perf/data?token=']) {
      const response = await fetch(url + path, { headers: HTML, redirect: 'manual' });
      expect([path, response.status, response.headers.get('set-cookie')]).toEqual([path, 401, null]);
      expect(await response.text()).not.toContain(token);
    }
    expect((await fetch(`${url}/perf/data`, { headers: { authorization: 'Bearer wrong' } })).status).toBe(401);
    expect((await dataOf(url, token)).scope).toBe('pod');
    expect(lines.all.filter((line) => line.includes(token))).toHaveLength(1);
  });

  it('changes the token for a cookie that only its own pages send', async () => {
    const { url, token } = await start({ dashboard: { tokenTtlMs: 60_000 } });
    const first = await fetch(`${url}/perf?token=${token}`, { headers: HTML, redirect: 'manual' });
    expect([first.status, first.headers.get('location')]).toEqual([303, 'perf/']);
    const set = first.headers.get('set-cookie')!;
    expect(set).toMatch(/^nestjs-perf-[0-9a-f]{8}=[\w.-]+; Max-Age=60; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(set).not.toContain(token);
    const cookie = set.split(';')[0]!;
    const page = await fetch(`${url}/perf/`, { headers: { ...HTML, cookie } });
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const asked = async (headers: Record<string, string>): Promise<number> =>
      (await fetch(`${url}/perf/data`, { headers })).status;
    expect(await asked({ cookie })).toBe(200);
    // A proxy's own, for whoever stands behind it.
    expect(await asked({ cookie, authorization: 'Bearer of-the-proxy' })).toBe(200);
    expect(await asked({ cookie: `${cookie}x`, authorization: 'Bearer of-the-proxy' })).toBe(401);
    expect(await asked({ cookie, 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'cors' })).toBe(401);
    // Over plain HTTP browsers tell of a site nothing, and of a script's origin all the same.
    expect(await asked({ cookie, origin: 'http://other.corp.test' })).toBe(401);
    expect(await asked({ cookie: cookie.replace('.', 'z.') })).toBe(401);
    expect(await asked({ cookie: `${cookie}x` })).toBe(401);
  });

  it('with a token of its own, lets in whom any pod has let in, and tells the token nobody', async () => {
    const token = 'a token that all pods have';
    const pods = [];
    for (let i = 0; i < 2; i++) {
      const lines = new Lines();
      const perf = { dashboard: { token } };
      const { url } = await listeningApp(adapterOf(adapter), { metadata, perf, nest: { logger: lines } });
      pods.push({ url, lines });
    }
    const [one, two] = pods as [(typeof pods)[0], (typeof pods)[0]];
    const { headers } = await fetch(`${one.url}/perf?token=${encodeURIComponent(token)}`, {
      headers: HTML,
      redirect: 'manual',
    });
    const cookie = headers.get('set-cookie')!.split(';')[0]!;
    for (const { url, lines } of [one, two]) {
      expect((await fetch(`${url}/perf/data`, { headers: { cookie } })).status).toBe(200);
      expect((await fetch(`${url}/perf/data`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
      expect((await fetch(`${url}/perf/data?token=${encodeURIComponent(token)}`)).status).toBe(200);
      const told = lines.all.filter((line) => line.startsWith('Perf dashboard'));
      expect(told).toEqual([`Perf dashboard: ${url}/perf (with the token of \`dashboard.token\` or PERF_TOKEN)`]);
      expect(lines.all.join()).not.toContain(token);
    }
  });

  it('takes PERF_TOKEN, and refuses a token that is too short without telling it', async () => {
    vi.stubEnv('PERF_TOKEN', 'of-the-environment');
    const lines = new Lines();
    const perf = { dashboard: true };
    const { url } = await listeningApp(adapterOf(adapter), { metadata, perf, nest: { logger: lines } });
    expect((await dataOf(url, 'of-the-environment')).process.pid).toBe(process.pid);
    vi.stubEnv('PERF_TOKEN', 'guessed');
    const message = 'must be a text of at least 16 characters, got 7 characters.';
    await expect(buildApp(adapterOf(adapter), { metadata, perf })).rejects.toThrow(`\`PERF_TOKEN\` ${message}`);
    await expect(buildApp(adapterOf(adapter), { metadata, perf: { dashboard: { token: 'guessed' } } })).rejects.toThrow(
      `\`dashboard.token\` ${message}`,
    );
    vi.unstubAllEnvs();
  });

  it('gives a program that keeps no cookies the page for its token', async () => {
    const { url, token } = await start();
    for (const path of ['/perf', '/perf/'])
      for (const accept of ['*/*', 'application/xhtml+xml, */*']) {
        const page = await fetch(`${url}${path}?token=${token}`, { headers: { accept } });
        expect([path, page.status, page.headers.get('content-type')]).toEqual([path, 200, 'text/html; charset=utf-8']);
      }
  });

  it('has another cookie than an application of another address with the same port number', async () => {
    const nameOf = async (host: string, port: number) => {
      const lines = new Lines();
      const nest = { logger: lines };
      const { app } = await buildApp(adapterOf(adapter), { metadata, perf: { dashboard: true }, nest });
      await app.listen(port, host);
      const address = (app.getHttpServer() as Server).address() as AddressInfo;
      const url = `http://${host}:${address.port}/perf?token=${tokenIn(lines.all)}`;
      const { headers } = await fetch(url, { headers: HTML, redirect: 'manual' });
      return { name: headers.get('set-cookie')!.split('=')[0], port: address.port };
    };
    const one = await nameOf('127.0.0.1', 0);
    const two = await nameOf('127.0.0.2', one.port);
    expect(two.port).toBe(one.port);
    expect(two.name).not.toBe(one.name);
  });

  it.each([
    ['https', true],
    ['https, http', true],
    ['http, https', false],
    ['http', false],
  ])('behind proxies that say `%s`, sends the cookie over TLS alone: %s', async (proto, isSecure) => {
    const { url, token } = await start();
    const headers = { ...HTML, 'x-forwarded-proto': proto };
    const { headers: answered } = await fetch(`${url}/perf?token=${token}`, { headers, redirect: 'manual' });
    expect(answered.get('set-cookie')!.endsWith('; Secure')).toBe(isSecure);
  });
});

it('leads to its own path alone, whatever the address of the request says', async () => {
  const lines = new Lines();
  const adapter = new FastifyAdapter({ useSemicolonDelimiter: true } as object) as never;
  const { url } = await listeningApp(adapter, { metadata, perf: { dashboard: true }, nest: { logger: lines } });
  const given = `${url}/perf;a/https:evil.example?token=${tokenIn(lines.all)}`;
  const { status, headers } = await fetch(given, { headers: HTML, redirect: 'manual' });
  expect([status, headers.get('location')]).toEqual([303, 'perf/']);
});

it('leaves no token in the log of Fastify, which names the URL of each request', async () => {
  const [lines, logged] = [new Lines(), [] as string[]];
  const stream = { write: (line: string): void => void logged.push(line) };
  const { url } = await listeningApp(new FastifyAdapter({ logger: { level: 'info', stream } }) as never, {
    metadata,
    perf: { dashboard: true },
    nest: { logger: lines },
  });
  await fetch(`${url}/perf/?token=${tokenIn(lines.all)}`, { headers: HTML });
  await fetch(`${url}/users`);
  expect(logged.join('')).toContain('/users');
  expect(logged.join('')).not.toContain('token');
});
