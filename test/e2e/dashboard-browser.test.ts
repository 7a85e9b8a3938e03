import { Controller, Get, Logger } from '@nestjs/common';
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { adapterOf } from '../fixtures/app.js';
import { launchBrowser, openPage } from '../fixtures/browser.js';
import { closeApps, listeningApp, type BuildOptions } from '../fixtures/build-app.js';
import { tokenIn } from '../fixtures/dashboard.js';
import { Lines } from '../fixtures/lines.js';
import { strippingProxy } from '../fixtures/stripping-proxy.js';
import { until } from '../fixtures/until.js';

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

  async function start(adapter: 'express' | 'fastify', perf: BuildOptions['perf'] = {}) {
    const lines = new Lines();
    const running = await listeningApp(adapterOf(adapter), {
      metadata: { controllers: [UsersController] },
      perf: { dashboard: true, ...perf },
      nest: { logger: lines },
    });
    return { ...running, token: tokenIn(lines.all) };
  }

  it.each(['express', 'fastify'] as const)(
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
        expect(await page.locator('.bar').evaluate((bar) => globalThis.getComputedStyle(bar).display)).toBe('flex');
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

  it('asks every 2 s, every 10 s when it is hidden, and nothing after 15 min without anybody', async () => {
    const { url, token } = await start('fastify');
    const { page, context } = await openPage(browser, `${url}/perf?token=${token}`);
    let [asked, answered] = [0, 0];
    const isPoll = (request: { url(): string }): boolean => request.url().includes('/perf/data');
    page.on('request', (request) => void (asked += Number(isPoll(request))));
    page.on('requestfinished', (request) => void (answered += Number(isPoll(request))));
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
        await until('its answer', () => asked === answered);
      }
      return asked - before;
    };
    const turn = (state: 'hidden' | 'visible'): Promise<void> =>
      page.evaluate((now) => {
        const { document } = globalThis as unknown as { document: EventTarget };
        Object.defineProperty(document, 'visibilityState', { value: now, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      }, state);
    const seen = await polls(20);
    expect(seen).toBeGreaterThanOrEqual(8);
    expect(seen).toBeLessThanOrEqual(11);
    await turn('hidden');
    await polls(2);
    const hidden = await polls(40);
    expect(hidden).toBeGreaterThanOrEqual(3);
    expect(hidden).toBeLessThanOrEqual(4);
    await turn('visible');
    expect(await polls(1)).toBe(1);
    await page.clock.fastForward('15:01');
    await page.locator('.link.idle').waitFor();
    expect(await polls(60)).toBe(0);
    await page.keyboard.press('ArrowDown');
    await page.clock.runFor(1_000);
    await page.locator('.link.live').waitFor();
    await until('polls again', async () => (await polls(2)) > 0);
    await context.close();
  });
});
