// npm run example -- history: a release makes one of two routes slower. The history tells which, since when, against what, and of
// what the change is made: as a verdict that comes by itself, and when it is asked. An hour and a half of real requests in seconds.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { PerfService } from 'nestjs-perf';
import { openShop } from './shop.js';

const MINUTE_MS = 60_000;
/** Requests of five minutes are judged together. */
const WINDOW_MS = 5 * MINUTE_MS;
/** The history looks at each full minute, so a clock that stands so long before one makes it look as often. */
const LOOKS_EVERY_MS = 50;

// The wall clock is this example's; what requests take is measured with another one.
let wallMs = Math.ceil(Date.now() / WINDOW_MS) * WINDOW_MS + 3 * MINUTE_MS - LOOKS_EVERY_MS;
Date.now = () => wallMs;

/** Five minutes: sixty requests of each route. */
async function fiveMinutes(app: NestFastifyApplication): Promise<void> {
  const url = await app.getUrl();
  const get = async (path: string): Promise<unknown> => (await fetch(`${url}/${path}`)).json();
  for (let i = 0; i < 3; i++) {
    await Promise.all(Array.from({ length: 20 }, () => ['orders', 'cart'].map(get)).flat());
  }
  wallMs += WINDOW_MS;
  await delay(3 * LOOKS_EVERY_MS);
}

const directory = mkdtempSync(join(tmpdir(), 'history-'));
const before = await openShop('1.0.0', directory);
for (let window = 0; window < 16; window++) await fiveMinutes(before);
const told = before.get(PerfService).verdicts().length;
console.log(`1.0.0 has run for 80 minutes: ${told === 0 ? 'no verdict' : `${told} verdicts`}.`);
await before.close();

const after = await openShop('1.1.0', directory);
const perf = after.get(PerfService);
const newer = () => perf.verdicts().filter(({ against }) => against === 'release');
let minutes = 0;
for (; newer().length === 0 && minutes < 60; minutes += 5) await fiveMinutes(after);
console.log(`1.1.0 has run for ${minutes} minutes:`);
for (const { text } of newer()) console.log(`  ${text}`);

console.log("\nperf.compare('release'):");
const { text } = await perf.compare('release');
console.log(text.replaceAll(/^/gm, '  '));
await after.close();
rmSync(directory, { recursive: true });
