// Asks both shops for the same pages, one after the other so that neither has a better time: `<seconds> <url> <url>`.
// Sends how long each answer took, and how many of a shop's requests were answered well.
import { setTimeout as delay } from 'node:timers/promises';

const [seconds, ...urls] = process.argv.slice(2) as [string, string, string];
const shops = urls.map((url) => ({ url, tookMs: [] as number[], ok: 0 }));

async function ask(shop: (typeof shops)[number], page: number): Promise<void> {
  const startedMs = performance.now();
  const response = await fetch(`${shop.url}/catalogue/${page}`);
  await response.arrayBuffer();
  shop.tookMs.push(performance.now() - startedMs);
  if (response.ok) shop.ok += 1;
}

const asked: Promise<void>[] = [];
for (let round = 0; round < Number(seconds) * 100; round++) {
  const page = Math.floor(round / 2) % 20;
  asked.push(ask(shops[round % 2]!, page));
  await delay(10);
}
await Promise.all(asked);
process.send?.(shops.map(({ tookMs, ok }) => ({ tookMs, ok })));
