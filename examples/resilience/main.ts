// npm run example -- resilience: an upstream accepts requests and answers none, and after two seconds it recovers. The same
// page as it was, and with limits, side by side: who waits, for how long, and what the upstream is asked meanwhile.
import { setTimeout as delay } from 'node:timers/promises';
import { PerfService } from 'nestjs-perf';
import { GitHub } from './github.js';
import { LimitedStars, openShop, Stars } from './shop.js';

const EVERY_MS = 20;
interface Answer {
  readonly tookMs: number;
  readonly stars: number | null;
  readonly endedAt: number;
}

const [githubOfPlain, githubOfLimited] = [new GitHub(), new GitHub()];
await Promise.all([githubOfPlain.start(), githubOfLimited.start()]);
const shops = [
  { name: 'as it was', github: githubOfPlain, app: await openShop(Stars, githubOfPlain.url) },
  { name: 'limited', github: githubOfLimited, app: await openShop(LimitedStars, githubOfLimited.url) },
];
const urls = await Promise.all(shops.map(({ app }) => app.getUrl()));

async function visit(url: string): Promise<Answer> {
  const startedAt = performance.now();
  const response = await fetch(`${url}/repositories`);
  const { stars } = (await response.json()) as { stars: number | null };
  const endedAt = performance.now();
  return { tookMs: endedAt - startedAt, stars, endedAt };
}

/** A visitor each 20 ms in both shops, whether or not those before have been answered. */
async function visits(ms: number): Promise<Promise<Answer>[][]> {
  const asked: Promise<Answer>[][] = urls.map(() => []);
  for (const endMs = performance.now() + ms; performance.now() < endMs;) {
    urls.forEach((url, i) => asked[i]!.push(visit(url)));
    await delay(EVERY_MS);
  }
  return asked;
}

const percentile = (answers: readonly Answer[], share: number): string => {
  const sorted = answers.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b);
  return `${sorted[Math.ceil(share * sorted.length) - 1]!.toFixed(0)} ms`;
};

async function tell(phase: string, asked: readonly Promise<Answer>[][], reached: readonly number[]): Promise<void> {
  console.log(phase);
  for (const [i, { name }] of shops.entries()) {
    const answers = await Promise.all(asked[i]!);
    const withStars = answers.filter(({ stars }) => stars !== null).length;
    console.log(
      `  ${name.padEnd(9)}: ${answers.length} pages, p50 ${percentile(answers, 0.5)}, p99 ${percentile(answers, 0.99)}, ` +
        `${withStars} with stars; GitHub was asked ${reached[i]} times`,
    );
  }
}

const asks = (): number[] => shops.map(({ github }) => github.asked);
const since = (before: readonly number[]): number[] => asks().map((count, i) => count - before[i]!);

await visits(300).then((warm) => Promise.all(warm.flat()));
let before = asks();
const healthy = await visits(1_000);
await tell('GitHub is well', healthy, since(before));

before = asks();
for (const { github } of shops) github.stall();
const stalled = await visits(2_000);
const reached = since(before);
const waiting = shops.map(({ app }) =>
  app
    .get(PerfService)
    .snapshot()
    .routes.reduce((sum, { inFlight }) => sum + inFlight, 0),
);
const recoveredAt = performance.now();
for (const { github } of shops) github.recover();
before = asks();
const recovering = await visits(1_000);
const recovered = since(before);
await tell('GitHub stalls for two seconds', stalled, reached);
console.log(`  Requests that waited at the end of it: ${waiting[0]} as it was, ${waiting[1]} limited`);
await tell('GitHub is well again', recovering, recovered);

const back = (await Promise.all(recovering[1]!)).filter(({ stars }) => stars !== null);
const backAfterMs = Math.min(...back.map(({ endedAt }) => endedAt)) - recoveredAt;
const { opened, deadlines, refusedOpen } = shops[1]!.app.get(PerfService).snapshot().resilience!['github']!;
console.log(
  `The limits: ${deadlines} calls ended at their deadline of 200 ms, then it opened (${opened} times in all) and refused ` +
    `${refusedOpen} at once; stars were back ${backAfterMs.toFixed(0)} ms after GitHub was.`,
);

for (const { app } of shops) await app.close();
for (const { github } of shops) github.stop();
