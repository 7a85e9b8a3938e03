// Twenty visitors: `<url> <seconds>`.
import { setTimeout as delay } from 'node:timers/promises';

const [url, seconds] = process.argv.slice(2) as [string, string];
const endsAt = Date.now() + Number(seconds) * 1_000;
let visits = 0;

/** One visit in 5,000 is a rare search, one asks for a report, beside which nobody else is served. */
function path(): string {
  visits += 1;
  if (visits % 5_000 === 500) return `/reports/${visits}?token=secret`;
  if (visits % 5_000 === 100) return '/search/rare';
  return visits % 4 === 0 ? '/search/ils' : `/orders/${visits}`;
}

async function visit(): Promise<void> {
  while (Date.now() < endsAt) {
    await (await fetch(url + path())).arrayBuffer();
    await delay(Math.random() * 40);
  }
}

await Promise.all(Array.from({ length: 20 }, visit));
