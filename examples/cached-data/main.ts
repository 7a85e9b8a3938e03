// npm run example -- cached-data: a page of a shop's catalogue takes thirteen calls of Redis and one of the database. The same
// catalogue with three decorators, side by side; then the database goes away. Needs a Redis: REDIS_URL, else one on
// port 6379.
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';

type Outcome = { tookMs: number[]; ok: number };
type Calls = { redis: number; database: number };

const start = (file: string, ...args: string[]): ChildProcess => fork(new URL(file, import.meta.url), args);
const awaitMessage = async <T>(child: ChildProcess): Promise<T> => ((await once(child, 'message')) as [T])[0];

const redisUrl = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';
const redis = new Redis(redisUrl);
for (let id = 0; id < 240; id++) {
  await redis.set(`product:${id}`, JSON.stringify({ id: String(id), name: `Shoe ${id}`, brand: String(id % 3) }));
}
await redis.hset('brands', { 0: 'Adidas', 1: 'Nike', 2: 'Puma' });
redis.disconnect();

const shops = ['plain', 'cached'].map((kind) => start('shop.js', kind, redisUrl));
const urls = await Promise.all(shops.map((shop) => awaitMessage<string>(shop)));

/** Customers ask both shops by turns, in a process of their own: what they wait is not the shops'. */
const traffic = (seconds: number): Promise<Outcome[]> => awaitMessage(start('load.js', String(seconds), ...urls));

async function tell(what: string): Promise<Calls[]> {
  return Promise.all(
    shops.map((shop) => {
      shop.send(what);
      return awaitMessage<Calls>(shop);
    }),
  );
}

function percentile({ tookMs }: Outcome, share: number): string {
  const sorted = tookMs.toSorted((a, b) => a - b);
  return `${sorted[Math.ceil(share * sorted.length) - 1]!.toFixed(1)} ms`;
}

await traffic(1);
const outcomes = await traffic(3);
const calls = await tell('the database is away');
['as it was', 'cached   '].forEach((name, i) => {
  const { redis: ofRedis, database } = calls[i]!;
  console.log(
    `${name}: p50 ${percentile(outcomes[i]!, 0.5)}, p95 ${percentile(outcomes[i]!, 0.95)}; ` +
      `a request calls Redis ${ofRedis.toFixed(2)} times, the database ${database.toFixed(2)} times`,
  );
});

const [plain, cached] = (await traffic(2)).map(({ tookMs, ok }) => `${ok} of ${tookMs.length}`);
console.log(`The database is away: as it was, ${plain} requests are answered; cached, ${cached}.`);

const closed = shops.map((shop) => once(shop, 'exit'));
await tell('close');
await Promise.all(closed);
