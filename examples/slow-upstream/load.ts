// Five customers, each with two requests a second, however long the answers take: `<url> <seconds>`.
import { setTimeout as delay } from 'node:timers/promises';

const [url, seconds] = process.argv.slice(2) as [string, string];
const rounds = Number(seconds) * 2;

async function ask(customer: string): Promise<void> {
  await (await fetch(`${url}/insights`, { headers: { 'x-customer': customer } })).arrayBuffer();
}

const asked: Promise<void>[] = [];
for (let round = 0; round < rounds; round++) {
  for (const customer of ['acme', 'globex', 'initech', 'umbrella', 'hooli']) {
    asked.push(ask(customer));
    await delay(100);
  }
}
await Promise.all(asked);
