import { Controller, Get, Logger } from '@nestjs/common';
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { findingsOn, launchBrowser, openPage } from '../fixtures/browser.js';
import { closeApps } from '../fixtures/build-app.js';
import { dataOf, startDashboard } from '../fixtures/dashboard.js';
import { until } from '../fixtures/until.js';

@Controller('reports')
class ReportsController {
  @Get(':id')
  one() {
    return { total: this.addUp(150) };
  }

  private addUp(ms: number): number {
    let total = 0;
    for (const end = performance.now() + ms; performance.now() < end;) total += Math.sqrt(total + 1);
    return total;
  }
}

/** The wide one in the long form: what is drawn is the same. */
const LOOKS = [
  { dark: true, width: 360 },
  ...(process.env['PERF_LONG'] === undefined ? [] : [{ dark: false, width: 1_280 }]),
];
const NAME = 'GET /reports/:id';
const CALL = /(?:addUp|one) \(.*dashboard-flame\.test\.ts:/;

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterEach(async () => {
  await closeApps();
  Logger.overrideLogger(false);
});
afterAll(() => browser?.close());

/** Sends requests until a block has its line. On a busy machine, the operating system may have made one: then nobody is named. */
async function block({ url, token }: { url: string; token: string }): Promise<boolean> {
  const isNamed = async (): Promise<boolean> => {
    await (await fetch(`${url}/reports/7`)).text();
    const { sections } = await dataOf(url, token);
    return sections.blocks.some(({ route, location, stack }) => {
      const line = stack.find((frame) => location !== null && frame.endsWith(`(${location})`));
      return route === NAME && line !== undefined && CALL.test(line);
    });
  };
  return until('a block with its line', isNamed, 90_000).then(
    () => true,
    () => false,
  );
}

it('a route and a block have a flame graph, for a mouse and for keys', { timeout: 240_000 }, async ({ skip }) => {
  const running = await startDashboard('fastify', { metadata: { controllers: [ReportsController] } });
  skip(!(await block(running)), 'the machine let no block be named in 90 s');
  for (const look of LOOKS) {
    const { page, context, complaints } = await openPage(browser, `${running.url}/perf?token=${running.token}`, look);
    await page.getByRole('button', { name: NAME }).click();
    const tree = page.getByRole('list', { name: `Flame graph of ${NAME}` });
    const call = tree.getByRole('button', { name: /addUp, [\d.]+ m?s, [\d.]+ %, .*dashboard-flame\.test\.ts:\d+$/ });
    await call.first().waitFor();
    expect(await findingsOn(page)).toEqual([]);
    await tree.getByRole('button').first().focus();
    await page.keyboard.press('ArrowDown');
    const focused = await page.evaluate('document.activeElement.getAttribute("aria-label")');
    expect(focused).not.toMatch(/^all,/);
    await page.keyboard.press('Enter');
    const first = tree.getByRole('button').first();
    await expect.poll(() => first.getAttribute('aria-label')).toContain(', 100 %');
    expect((await first.getAttribute('aria-label'))!.split(',')[0]).toBe((focused as string).split(',')[0]);
    await expect
      .poll(() => page.evaluate('String(document.activeElement.getAttribute("aria-label"))'))
      .toContain(', 100 %');
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByRole('button', { name: NAME }).click();
    // On a busy machine another block may have its line elsewhere, or be the operating system's.
    const blocks = page.locator('.blocks > li', { has: page.locator('.route'), hasText: CALL });
    await blocks.first().locator('summary').click();
    const readBlock = async (): Promise<string> => {
      const frame = blocks.first().locator('.flame li > button').first();
      return (await frame.count()) > 0 ? (await frame.getAttribute('aria-label'))! : blocks.first().innerText();
    };
    await expect.poll(readBlock, { timeout: 15_000 }).toMatch(/^[\w.]*(?:addUp|one), /);
    expect(complaints).toEqual([]);
    await context.close();
  }
});
