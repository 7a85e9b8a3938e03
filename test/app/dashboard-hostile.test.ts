import { Controller, Get, HttpException, Inject, Logger } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { top } from '../../src/dashboard/top/top.js';
import { PerfService } from '../../src/index.js';
import { launchBrowser, openPage } from '../fixtures/browser.js';
import { closeApps, recordsOf } from '../fixtures/build-app.js';
import { dataOf, startDashboard, terminal, textOf as plainText } from '../fixtures/dashboard.js';
import { until } from '../fixtures/until.js';

const HTML = '<img src=x onerror=alert`1`><script>alert`2`</script>';
const ESCAPES = '\u001b[2J\u001b]0;owned\u0007\u009b31m\r';
/** Unicode's Bidi_Control: unseen, and the text behind them is read from right to left. */
const TURNS = '\u202egnp.exe\u202c\u2067x\u2069\u061c\u200e\u200f';
const LONG = 'very-long'.repeat(400);
// oxlint-disable-next-line no-control-regex
const COMMANDS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

@Controller()
class HostileController {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}
  @Get('__proto__')
  proto() {
    return this.perf.timed('__proto__', async () => ({}));
  }
  @Get(`turned/${TURNS}/end`)
  turned() {
    return this.perf.timed(`${TURNS}${ESCAPES}${HTML}`, async () => ({}));
  }
  @Get(`page/${HTML}`)
  page() {
    throw new HttpException('no', 503);
  }
  @Get(`terminal/${ESCAPES}`)
  terminal() {
    return {};
  }
  @Get(`long/${LONG}`)
  long() {
    return {};
  }
}
const PATHS = ['__proto__', `turned/${TURNS}/end`, `page/${HTML}`, `terminal/${ESCAPES}`, `long/${LONG}`];

describe('hostile names', { timeout: 120_000 }, () => {
  let url: string;
  let token: string;

  beforeAll(async () => {
    const running = await startDashboard('fastify', {
      metadata: { controllers: [HostileController] },
      perf: {
        release: `1.0${HTML}${TURNS}${ESCAPES}`,
        unit: ({ headers }) => ({ userId: headers['x-user'] as string }),
      },
    });
    ({ url, token } = running);
    const users = ['__proto__', 'constructor', HTML];
    // Of a failing route something is said in a sentence.
    for (const path of [...PATHS, PATHS[2]!, PATHS[2]!])
      for (const user of users) await fetch(`${url}/${encodeURI(path)}`, { headers: { 'x-user': user } });
    const records = await recordsOf(running, 21);
    expect(new Set(records.map(({ route }) => route))).toEqual(new Set(PATHS.map((path) => `/${path}`)));
    // Two samples: what has failed is known from the second on.
    await dataOf(url, token);
  });
  afterAll(async () => {
    await closeApps();
    Logger.overrideLogger(false);
  });

  it('cannot command a terminal, neither as text nor in `top`', async () => {
    const text = await plainText(url, token);
    const { said, kept } = terminal();
    expect(await top(['top', url, '--token', token, '--once'], kept)).toBe(0);
    for (const told of [text, said.out]) {
      expect(told).not.toMatch(COMMANDS);
      expect(told).toMatch(/^GET \/__proto__ +3 /m);
      expect(told).toMatch(/^GET \/turned\/\\u202egnp\.exe\\u202c\\u2067x\\u2069\\u061c/m);
      expect(told).toMatch(/^GET \/terminal\/\\u001b\[2J/m);
      expect(Math.max(...told.split('\n').map(({ length }) => length))).toBeLessThan(450);
    }
  });

  it('are text on the page, leave the rest of it where it is, and find their details', async () => {
    const browser = await launchBrowser();
    try {
      const { page, complaints } = await openPage(browser, `${url}/perf?token=${token}`, { width: 360 });
      await page.locator('.routes .opens').first().waitFor();
      const textOf = (selector: string): Promise<string> => page.locator(selector).innerText();
      const requests = await textOf('#requests');
      expect(requests).toContain('/\\u202egnp.exe\\u202c\\u2067x\\u2069\\u061c\\u200e\\u200f/end'.slice(1));
      expect(requests).toContain(`/page/${HTML}`);
      expect(await textOf('#users')).toContain('__proto__');
      expect(await textOf('#upstreams')).toContain('__proto__');
      for (const text of [await textOf('body'), await page.title()])
        expect(text).not.toMatch(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/);
      expect(await page.locator('main img, main script, header img').count()).toBe(0);
      const { wide, polluted } = await page.evaluate(() => {
        const { document } = globalThis as unknown as { document: { documentElement: { scrollWidth: number } } };
        return { wide: document.documentElement.scrollWidth, polluted: Object.keys(Object.prototype) };
      });
      expect(wide).toBeLessThanOrEqual(360);
      expect(polluted).toEqual([]);
      await page.getByPlaceholder('Find a route').fill('__PROTO__');
      await until('one row', async () => (await page.locator('.routes tbody tr').count()) === 1);
      await page.locator('.routes .opens').click();
      await page.locator('.route-detail .distribution').waitFor();
      expect(await textOf('.route-detail')).toContain('constructor');
      expect(complaints).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
