import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Controller, Get, Logger } from '@nestjs/common';
import type { Browser, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { top } from '../../src/dashboard/top/top.js';
import type { HistoryRow } from '../../src/history/rows/row.js';
import { fileHistory } from '../../src/index.js';
import { either } from '../fixtures/app.js';
import { launchBrowser, openPage } from '../fixtures/browser.js';
import { closeApps, type BuildOptions } from '../fixtures/build-app.js';
import { startDashboard, terminal } from '../fixtures/dashboard.js';
import { rowOf } from '../fixtures/history.js';
import { strippingProxy } from '../fixtures/stripping-proxy.js';
import { until } from '../fixtures/until.js';

const HOUR_MS = 3_600_000;

/** As earlier processes have left it. */
async function keepHistory(directory: string, rows: readonly HistoryRow[]): Promise<void> {
  const store = await fileHistory({ directory }).open({ keptMs: () => 35 * 24 * HOUR_MS, maxBytes: 1e8 });
  await store.write(rows, []);
  await store.close();
}

@Controller('users')
class UsersController {
  @Get(':id')
  one() {
    return { name: 'Ada' };
  }
}

describe('the page in a browser', { timeout: 120_000 }, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterEach(async () => {
    await closeApps();
    Logger.overrideLogger(false);
  });
  afterAll(() => browser?.close());

  const start = (adapter: 'express' | 'fastify', perf: BuildOptions['perf'] = {}) =>
    startDashboard(adapter, { metadata: { controllers: [UsersController] }, perf });

  it.each(either('express'))(
    'is whole behind a proxy that strips a part of the path: access, files and data, on %s',
    async (adapter) => {
      const { url, token } = await start(adapter);
      const proxy = await strippingProxy('/internal/x', url);
      try {
        await fetch(`${proxy.url}/internal/x/users/7`);
        const { page, context, complaints } = await openPage(browser, `${proxy.url}/internal/x/perf`);
        // The browser tells of every answer that is an error.
        expect(complaints.splice(0)).toEqual([expect.stringContaining('401')]);
        await page.getByLabel('Token').fill(token);
        await page.getByRole('button', { name: 'Open' }).click();
        await page.locator('.link.live').waitFor();
        await page.getByRole('button', { name: 'GET /users/:id' }).click();
        await page.locator('.route-detail .distribution').waitFor();
        expect(page.url()).toBe(`${proxy.url}/internal/x/perf/`);
        expect(complaints).toEqual([]);
        expect(proxy.asked.filter((path) => !path.startsWith('/internal/x/'))).toEqual([]);
        await context.close();
        const printed = await openPage(browser, `${proxy.url}/internal/x/perf?token=${token}`);
        await printed.page.locator('.link.live').waitFor();
        expect([printed.page.url(), printed.complaints]).toEqual([`${proxy.url}/internal/x/perf/`, []]);
        await printed.context.close();
      } finally {
        await proxy.close();
      }
    },
  );

  it('draws the last hours over those of last week, and where a release came, of the whole and of a route', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'perf-page-'));
    try {
      const now = Date.now();
      const hour = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS;
      await keepHistory(directory, [
        rowOf({ at: Math.floor(now / 300_000) * 300_000 - 1_800_000, requests: 300, release: '1.0.0' }),
        ...[0, 1].map((hours) =>
          rowOf({ tier: '1h', at: hour(now - hours * HOUR_MS - 7 * 24 * HOUR_MS), requests: 7_200, release: '0.9.0' }),
        ),
      ]);
      const history = { store: fileHistory({ directory }) };
      const { url, token } = await start('fastify', { history, release: '1.1.0' });
      await fetch(`${url}/users/7`);
      const { page, context, complaints } = await openPage(browser, `${url}/perf?token=${token}`);
      await page.getByRole('button', { name: 'GET /users/:id' }).click();
      for (const section of ['#now', '.route-detail']) {
        const past = page.locator(`${section} .chart:has-text("last week")`);
        await past.nth(1).waitFor();
        expect(await past.allInnerTexts()).toEqual([
          expect.stringMatching(/^Requests per second[^]*last week 2\.0/),
          expect.stringMatching(/^Response time, p95[^]*last week (10|9\.\d+) ms/),
        ]);
        await expect
          .poll(() => page.locator(`${section} .release`).allInnerTexts())
          .toEqual([expect.stringMatching(/^Release 1\.1\.0 since \d\d:\d\d/)]);
      }
      expect(complaints).toEqual([]);
      await context.close();
      const { said, kept } = terminal();
      const look = (route: string) => top(['top', url, '--token', token, '--route', route, '--once'], kept);
      expect(await look('GET /users/:id')).toBe(0);
      expect(said.out).toMatch(/^THE LAST HOUR OF GET \/users\/:id\nsince \(UTC\) [^]*^\d\d:\d\d +1\.0 +0 .* 2\.0 +/m);
      expect(said.out).toMatch(/^release 1\.1\.0 since \d\d:\d\d$/m);
      expect(await look('GET /nowhere')).toBe(0);
      expect(said.out).toContain('No request of it.');
    } finally {
      await closeApps();
      rmSync(directory, { recursive: true });
    }
  });

  it('asks every 2 s, nothing while it is hidden, and at once when it is seen again', async () => {
    const { url, token } = await start('fastify');
    const { page, context } = await openPage(browser, `${url}/perf?token=${token}`);
    let asked = 0;
    // One that was asked before this listens ends as well: counting ends would be one too many for good.
    const underWay = new Set<object>();
    page.on('request', (request) => {
      if (!request.url().includes('/perf/data')) return;
      asked += 1;
      underWay.add(request);
    });
    for (const ended of ['requestfinished', 'requestfailed'] as const)
      page.on(ended as 'requestfinished', (request) => void underWay.delete(request));
    await page.clock.install();
    await page.reload();
    await page.locator('.link.live').waitFor();
    // From here on, only the test moves the time.
    await page.clock.pauseAt(Date.now() + 60_000);
    /** Polls in a stretch of the page's own time: each gets its answer before the clock goes on. */
    const polls = async (seconds: number): Promise<number> => {
      const before = asked;
      for (let i = 0; i < seconds; i++) {
        await page.clock.runFor(1_000);
        await until('its answer', () => underWay.size === 0);
      }
      return asked - before;
    };
    const turn = (hidden: boolean): Promise<void> =>
      page.evaluate((now) => {
        const { document } = globalThis as unknown as { document: EventTarget };
        Object.defineProperty(document, 'hidden', { value: now, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      }, hidden);
    const seen = await polls(20);
    expect(seen).toBeGreaterThanOrEqual(8);
    expect(seen).toBeLessThanOrEqual(11);
    await turn(true);
    await polls(2);
    expect(await polls(40)).toBe(0);
    const before = asked;
    await turn(false);
    await until('a poll', () => asked > before);
    await context.close();
  });

  it('asks for the route that one opens at once, whatever is under way, and stays paused whatever that answer is', async () => {
    const { url, token } = await start('fastify');
    await fetch(`${url}/users/7`);
    const { page, context } = await openPage(browser, `${url}/perf?token=${token}`);
    await page.locator('.routes .opens').first().waitFor();
    const held: Route[] = [];
    await page.route('**/perf/data?*', (route) => void held.push(route));
    await until('a poll', () => held.length === 1);
    await page.locator('.routes .opens').first().click();
    await until('the poll for it', () => held.length === 2);
    expect(held[1]!.request().url()).toContain('route=GET');
    await page.getByRole('button', { name: 'Pause' }).click();
    await held[1]!.fulfill({ status: 500 }).catch(() => {});
    expect(await page.locator('.link').getAttribute('class')).toBe('link paused');
    await page.unroute('**/perf/data?*');
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.locator('.link.live').waitFor();
    await context.close();
  });
});
