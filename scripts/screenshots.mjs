// The picture of the dashboard for README and guide, docs/images/dashboard-light.png: a small application under traffic, in a real browser.
//
//   node scripts/screenshots.mjs [--seconds 60] [--out docs/images] [--whole]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { chromium } from 'playwright-core';
import { ensureBrowser } from './browser.mjs';
import { run } from './install.mjs';
import { buildPage } from './page.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    out: { type: 'string', default: 'docs/images' },
    /** Whole pages, dark and narrow ones too: to look at while working on them. */
    whole: { type: 'boolean', default: false },
    /** The visitors' own process: what they spend is not the application's. */
    visit: { type: 'string' },
  },
});
if (values.visit !== undefined) await visitFor(values.visit, Number(values.seconds));
else await takePictures();

async function visitFor(shop, seconds) {
  const { visit } = await import('../build/test/fixtures/shop-visits.js');
  const endsAt = Date.now() + seconds * 1_000;
  for (let round = 0; Date.now() < endsAt; round++) {
    await visit(shop, round);
    await delay(Math.random() * 120);
  }
}

async function takePictures() {
  const executablePath = ensureBrowser();
  run('node_modules/.bin/tsc', ['-p', 'tsconfig.run.json', '--noCheck']);
  await buildPage('build/src/dashboard/page-assets.js');
  const { openShop } = await import('../build/test/fixtures/busy-shop.js');

  let address = '';
  const hear = (line) => {
    address = /^Perf dashboard: (\S+)$/.exec(String(line))?.[1] ?? address;
  };
  const logger = { log: hear, warn() {}, error() {} };
  const shop = await openShop(new FastifyAdapter(), { perf: { dashboard: true, release: '2.4.1' }, logger });
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  mkdirSync(values.out, { recursive: true });

  const pages = [];
  for (const [name, colorScheme, width, height] of [
    ['dashboard-light', 'light', 1280, 1000],
    ['dashboard-dark', 'dark', 1280, 1000],
    ['dashboard-narrow', 'light', 360, 900],
    ['dashboard-narrow-dark', 'dark', 360, 900],
  ]) {
    if (!values.whole && name !== 'dashboard-light') continue;
    const context = await browser.newContext({ colorScheme, viewport: { width, height }, reducedMotion: 'reduce' });
    const page = await context.newPage();
    page.on('console', (message) => console.log(`${name}: ${message.text()}`));
    page.on('pageerror', (error) => console.log(`${name}: ${error.message}`));
    await page.goto(address);
    pages.push({ name, page });
  }
  const visitors = fork(process.argv[1], ['--visit', shop.url, '--seconds', values.seconds]);
  await delay((Number(values.seconds) - 3) * 1_000);
  for (const { name, page } of pages) {
    const path = join(values.out, `${name}.png`);
    if (values.whole) await page.getByRole('button', { name: 'GET /offers/:id' }).first().click();
    await delay(1_500);
    await page.screenshot({ path, fullPage: values.whole });
    console.log(`${path}: ${(statSync(path).size / 1024).toFixed(0)} KB`);
  }
  await browser.close();
  if (visitors.exitCode === null) await once(visitors, 'exit');
  await shop.close();
}
