import { randomUUID } from 'node:crypto';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Controller, Get, HttpException, Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { DashboardData } from '../../src/dashboard/view.js';
import { redisHistory } from '../../src/entries/redis.js';
import type { History } from '../../src/history/history.js';
import { HistoryReader } from '../../src/ports/history.js';
import { type Adapter, adapterOf, either } from '../fixtures/app.js';
import { findingsOn, launchBrowser, openPage } from '../fixtures/browser.js';
import { closeApps, listeningApp } from '../fixtures/build-app.js';
import { dataOf, textOf } from '../fixtures/dashboard.js';
import { connection } from '../fixtures/redis.js';

@Controller('users')
class UsersController {
  @Get(':id')
  one() {
    return { name: 'Ada' };
  }
  @Get()
  all() {
    throw new HttpException('no', 500);
  }
}

const TOKEN = 'the-token-of-all-pods';

afterEach(async () => {
  await closeApps();
  Logger.overrideLogger(false);
});

/** Two pods of one application, and what each does once a minute. */
async function twoPods(adapter: Adapter) {
  const prefix = `perf:fleet-test:${randomUUID()}`;
  const start = async () => {
    const perf = { dashboard: { token: TOKEN }, history: { store: redisHistory({ connection, prefix }) } };
    const { app, url } = await listeningApp(adapterOf(adapter), { metadata: { controllers: [UsersController] }, perf });
    return { url, prefix, history: app.get<History>(HistoryReader) };
  };
  return [await start(), await start()] as const;
}

/** Sends each request to another pod than the last. */
async function roundRobin(urls: readonly string[]): Promise<string> {
  let turn = 0;
  const server = createServer((request, response) => {
    const target = new URL(request.url!, urls[turn++ % urls.length]);
    const asked = httpRequest(target, { method: request.method!, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    request.pipe(asked);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => (server.closeAllConnections(), void server.close()));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What is the same whichever pod answers. */
const shared = ({ scope, routes, totals, pods, overMs }: DashboardData) => ({ scope, routes, totals, pods, overMs });

describe.each(either('express'))('the page of several pods on %s', { timeout: 120_000 }, (adapter) => {
  it('tells of all of them alike, whoever answers, and of one where it is asked for', async () => {
    const [a, b] = await twoPods(adapter);
    for (let i = 0; i < 12; i++) await (await fetch(`${a.url}/users/7`)).text();
    for (let i = 0; i < 30; i++) await (await fetch(`${b.url}/users/7`)).text();
    for (let i = 0; i < 3; i++) await (await fetch(`${b.url}/users`)).text();
    for (const pod of [a, b]) await pod.history.tick();
    const url = await roundRobin([a.url, b.url]);
    // A pod that is slow to read the store answers with its own figures, or with older ones, until it has.
    const { routes, totals, pods, scope } = await vi.waitFor(
      async () => {
        const [one, other] = [await dataOf(url, TOKEN), await dataOf(url, TOKEN)];
        expect(one.totals?.count).toBe(45);
        expect(shared(one)).toEqual(shared(other));
        return one;
      },
      { timeout: 50_000, interval: 200 },
    );
    expect(Object.fromEntries(routes.map(({ name, count, errors = 0 }) => [name, [count, errors]]))).toEqual({
      'GET /users/:id': [42, 0],
      'GET /users': [3, 3],
    });
    expect([scope, totals!.count, totals!.errors, pods!.length]).toEqual(['fleet', 45, 3, 2]);
    for (const pod of pods!) {
      expect(pod.memoryBytes).toBeGreaterThan(2 ** 20);
      expect(Object.keys(pod)).toEqual(
        expect.arrayContaining(['requests', 'p95Ms', 'loopBusy', 'throttled', 'release']),
      );
    }
    const detail = (await dataOf(url, TOKEN, `?route=${encodeURIComponent('GET /users/:id')}`)).detail!;
    expect(detail.row.id).toBe('GET /users/:id');
    const own = await dataOf(a.url, TOKEN, '?scope=pod');
    expect([own.scope, own.isShared, own.totals!.count]).toEqual(['pod', true, 12]);
    const text = await textOf(url, TOKEN);
    expect(text).toMatch(/^PODS, THEIR LAST MINUTE$/m);
    expect(text).toMatch(/^GET \/users\/:id +42 /m);
  });

  it('is there whatever somebody else has written to Redis', async () => {
    const [a] = await twoPods(adapter);
    await (await fetch(`${a.url}/users/7`)).text();
    await a.history.tick();
    const client = new Redis(connection);
    onTestFinished(() => client.disconnect());
    const prefix = a.prefix;
    const told = {
      pod: 'x\u001b[2J',
      instance: 7,
      release: {},
      at: Date.now(),
      requests: 2 ** 53,
      errors: -1,
      p95Ms: 'NaN',
    };
    await client.hset(`${prefix}:{fleet}:minute:${Math.floor(Date.now() / 60_000)}`, {
      junk: 'no json',
      1: JSON.stringify(told),
      2: '{"at":9007199254740991}',
    });
    const verdict = {
      id: 'x',
      kind: 'worse',
      state: 'active',
      since: 2 ** 53,
      text: 'y',
      routes: [],
      because: [],
      ci: [],
    };
    const verdicts = {
      judgedUntil: 2 ** 53,
      verdicts: [verdict, { ...verdict, since: 1, change: 1, routes: [1] }, null],
    };
    await client.set(`${prefix}:{fleet}:verdicts`, JSON.stringify(verdicts));
    await client.hset(`${prefix}:3:{1m:${Math.floor(Date.now() / 60_000) * 60_000}}`, {
      junk: '9',
      [JSON.stringify(['', '\u001b[31m'])]: 'x',
      [JSON.stringify(['', 'process'])]: 'x',
    });
    await a.history.tick();
    const text = await textOf(a.url, TOKEN);
    expect(text).toMatch(/^GET \/users\/:id +1 /m);
    // eslint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
    // On a busy machine one of the pods may be the odd one.
    const { now } = (await dataOf(a.url, TOKEN)).sections;
    expect(now.filter(({ section }) => section !== 'pods')).toEqual([]);
  });
});

describe('the page of several pods in a browser', { timeout: 180_000 }, () => {
  it.each([
    ['light, 1,440 px', 1_440, false],
    ['dark, 360 px', 360, true],
  ])('works behind a proxy that asks another pod each time: %s', async (_, width, dark) => {
    const [a, b] = await twoPods('fastify');
    for (let i = 0; i < 5; i++) for (const { url } of [a, b]) await (await fetch(`${url}/users/7`)).text();
    for (const pod of [a, b]) await pod.history.tick();
    const url = await roundRobin([a.url, b.url]);
    const browser = await launchBrowser();
    try {
      const { page, complaints } = await openPage(browser, `${url}/perf?token=${TOKEN}`, { width, dark });
      await page.locator('.link.live').waitFor();
      await page.locator('#pods tbody tr').nth(1).waitFor();
      expect(await page.locator('#pods tbody tr').count()).toBe(2);
      expect(await page.locator('#requests tbody tr').first().textContent()).toContain('10');
      const opener = page.locator('.routes .opens').first();
      await opener.focus();
      await page.keyboard.press('Enter');
      await page.locator('.route-detail').waitFor();
      const wide = await page.evaluate('document.documentElement.scrollWidth');
      expect(wide).toBeLessThanOrEqual(width);
      expect(await findingsOn(page)).toEqual([]);
      await page.getByRole('button', { name: 'This pod' }).click();
      await page.locator('#container').waitFor();
      expect(await page.getByRole('button', { name: 'This pod' }).getAttribute('aria-pressed')).toBe('true');
      expect(complaints).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
