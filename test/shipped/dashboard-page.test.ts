import { Logger } from '@nestjs/common';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../scripts/redis.mjs';
import { adapterOf } from '../fixtures/app.js';
import { findingsOn, launchBrowser, openPage, type OpenedPage } from '../fixtures/browser.js';
import { openShop, type BusyShop } from '../fixtures/busy-shop.js';
import { tokenIn } from '../fixtures/dashboard.js';
import { Lines } from '../fixtures/lines.js';
import { call, visit } from '../fixtures/shop-visits.js';
import { until } from '../fixtures/until.js';

const SECTIONS = [
  'now',
  'requests',
  'blocks',
  'container',
  'deferred',
  'upstreams',
  'users',
  'compression',
  'experiments',
];
const LONG = process.env['PERF_LONG'] !== undefined;
/** Each width and each scheme once, then the other pairs. */
const LOOKS = [
  ['1,440 px, light', 1_440, false],
  ['1,440 px, dark', 1_440, true],
  ['360 px, dark', 360, true],
  ['360 px, light', 360, false],
] as const;
const HOSTILE = '<img src=x onerror=alert(1)>';

const textOf = (page: Page, selector: string): Promise<string> => page.locator(selector).innerText();

describe('the page of the dashboard, in a browser', { timeout: 120_000 }, () => {
  const lines = new Lines();
  let browser: Browser;
  let shop: BusyShop;
  let address: string;
  let opened: OpenedPage;

  beforeAll(async () => {
    browser = await launchBrowser();
    shop = await openShop(adapterOf('fastify'), { perf: { dashboard: true, release: '2.4.1' }, logger: lines });
    address = `${shop.url}/perf?token=${tokenIn(lines.all)}`;
    opened = await openPage(browser, address);
    await call(`${shop.url}/orders`, { user: HOSTILE, body: { item: `${HOSTILE}!` } });
    await call(`${shop.url}/reports/${encodeURIComponent(HOSTILE)}?q=${encodeURIComponent(HOSTILE)}`, {
      user: HOSTILE,
    });
    for (let round = 0; round < 12; round++) await visit(shop.url, round);
    await until('two samples', async () => (await opened.page.locator('#now .chart').count()) > 0);
  });
  afterAll(async () => {
    await browser?.close();
    await shop?.close();
    Logger.overrideLogger(false);
  });

  it('has every section with real data', async () => {
    const { page } = opened;
    await page.reload();
    await page.locator('.link.live').waitFor();
    for (const id of SECTIONS) expect(await page.locator(`section#${id} h2`).count(), id).toBe(1);
    expect(await textOf(page, '.top')).toMatch(/pod\s+\S+\s+release\s+2\.4\.1/);
    // What has failed before is forgotten after a while.
    const failsNow = async (): Promise<boolean> => {
      await call(`${shop.url}/payments/status`);
      return /GET \/payments\/status failed \d+ of \d+ times/.test(await textOf(page, '#now'));
    };
    await until('what fails now', failsNow, 90_000);
    expect(await textOf(page, '#requests')).toMatch(/GET \/offers\/:id[\s\S]*ShopController\.offers/);
    expect(await textOf(page, '#container')).toMatch(/CPU[\s\S]*cores/);
    expect(await textOf(page, '#deferred')).toContain('No mailbox for');
    expect(await textOf(page, '#upstreams')).toMatch(/redis cache:6379[\s\S]*\d/);
    expect(await textOf(page, '#users')).toContain('user-');
    expect(await textOf(page, '#compression')).toMatch(/saved\s+\d+ %/);
    expect(page.url()).toBe(`${shop.url}/perf/`);
  }, 120_000);

  it('shows a block with its route and its line', { timeout: 150_000 }, async ({ skip }) => {
    const named = /GET \/reports\/:id[\s\S]*busy-shop\.ts:\d+/;
    const nameOne = async (): Promise<boolean> => {
      await call(`${shop.url}/reports/again`);
      return named.test(await textOf(opened.page, '#blocks'));
    };
    const isNamed = await until('a block that is named', nameOne, 90_000).then(
      () => true,
      () => false,
    );
    skip(!isNamed, 'the machine let no block be named in 90 s: the operating system may have made each');
  });

  it('shows what came from outside as text', async () => {
    const { page, complaints } = opened;
    // Users whose requests took longer come first, and on a busy machine any may have.
    await until('the user among the heaviest', async () => {
      await call(`${shop.url}/reports/1`, { user: HOSTILE });
      return (await textOf(page, '#users')).includes(HOSTILE);
    });
    expect(await textOf(page, '#deferred')).toContain(`No mailbox for ${HOSTILE}!`);
    expect(await page.locator('main img, main script').count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  it.each(LOOKS.filter((_, i) => LONG || i % 2 === 0))(
    'at %s: nothing is cut off, no finding of axe, no violation of its policy',
    async (_, width, dark) => {
      const { page, context, complaints } = await openPage(browser, address, { width, dark });
      await page.locator('.routes .opens').first().click();
      await page.locator('.route-detail .distribution').waitFor();
      const [wide, background] = await page.evaluate(() => {
        const { document, getComputedStyle } = globalThis as unknown as {
          document: { documentElement: { scrollWidth: number }; body: object };
          getComputedStyle(element: object): { backgroundColor: string };
        };
        return [document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor] as const;
      });
      expect(wide).toBeLessThanOrEqual(width);
      expect(background).toBe(dark ? 'rgb(17, 18, 20)' : 'rgb(247, 247, 245)');
      expect(await findingsOn(page)).toEqual([]);
      expect(complaints).toEqual([]);
      await context.close();
    },
  );

  it('opens a route by keyboard, sorts, finds', async () => {
    const { page } = opened;
    const first = page.locator('.routes .opens').first();
    await first.focus();
    await page.keyboard.press('Enter');
    await page.locator('.route-detail .distribution').waitFor();
    expect(await first.getAttribute('aria-expanded')).toBe('true');
    await page.keyboard.press('Enter');
    await page.locator('.route-detail').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: '5xx' }).focus();
    await page.keyboard.press('Enter');
    await until('it is sorted', async () => (await textOf(page, 'th[aria-sort="descending"]')).includes('5xx'));
    const top = page.locator('.routes tbody tr').first();
    await until('what fails is first', async () => (await top.innerText()).includes('/payments/status'));
    await page.getByPlaceholder('Find a route').fill('flights');
    await until('two rows', async () => (await page.locator('.routes tbody tr').count()) === 2);
    await page.getByPlaceholder('Find a route').fill('');
  });

  it('does not record its own polls', async () => {
    const routes = await opened.page.locator('#requests').innerText();
    expect(routes).not.toContain('/perf');
  });

  it('says when the server is away, and goes on when it is back', async () => {
    const authorize = () => true;
    // One that no client is given while nobody listens there.
    const port = await freePort();
    const lasting = await openShop(adapterOf('express'), { perf: { dashboard: { authorize } }, logger: false, port });
    const { page, context } = await openPage(browser, `${lasting.url}/perf/`);
    await page.locator('.link.live').waitFor();
    await lasting.close();
    await page.locator('.link.lost').waitFor();
    expect(await textOf(page, '.trouble')).toMatch(/^The application does not answer\. Trying again\./);
    const again = await openShop(adapterOf('express'), { perf: { dashboard: { authorize } }, logger: false, port });
    await call(`${again.url}/flights`);
    await page.locator('.link.live').waitFor();
    await until('the new process', async () => (await textOf(page, '#requests')).includes('/flights'));
    await context.close();
    await again.close();
  });
});
