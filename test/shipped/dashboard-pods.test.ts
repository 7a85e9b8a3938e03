import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { findingsOn, launchBrowser, openPage } from '../fixtures/browser.js';
import { closePods, roundRobin, TOKEN, twoPods } from '../fixtures/dashboard-pods.js';

/** The wide one in the long form: what is drawn is the same. */
const LOOKS = [
  { dark: true, width: 360 },
  ...(process.env['PERF_LONG'] === undefined ? [] : [{ dark: false, width: 1_440 }]),
];

describe('the page of several pods in a browser', { timeout: 180_000 }, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterEach(async () => {
    await Promise.all(browser.contexts().map((context) => context.close()));
    await closePods();
  });
  afterAll(() => browser.close());

  it.each(LOOKS)('works behind a proxy that asks another pod each time: %j', async ({ width, dark }) => {
    const [a, b] = await twoPods('fastify');
    for (let i = 0; i < 5; i++) for (const { url } of [a, b]) await (await fetch(`${url}/users/7`)).text();
    for (const pod of [a, b]) await pod.history.tick();
    const url = await roundRobin([a.url, b.url]);
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
  });
});
