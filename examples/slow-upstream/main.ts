// npm run example -- slow-upstream [--us]: P95 rises. Is it us or them, and for whom? One customer's own GitHub becomes slow;
// with --us it is our handler that becomes slow for that customer.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PerfService } from 'nestjs-perf';
import { AppModule, slowdown } from './app.module.js';
import { startGitHubs, stopGitHubs } from './github.js';
import { tell } from './story.js';
import { RequestsSince } from './requests-since.js';

const { values } = parseArgs({ options: { us: { type: 'boolean', default: false } } });
await startGitHubs();
const app = await NestFactory.create(AppModule, new FastifyAdapter(), { logger: ['error'] });
await app.listen(0, '127.0.0.1');
const requests = new RequestsSince(app);

/** Customers ask for so long. They are a process of their own, so that what they wait is not the application's. */
async function traffic(seconds: number): Promise<void> {
  const customers = fork(new URL('load.js', import.meta.url), [await app.getUrl(), String(seconds)]);
  const [status] = (await once(customers, 'exit')) as [number | null];
  if (status !== 0) throw new Error('The customers could not ask.');
}

await traffic(1);
await requests.take();
await traffic(3);
const before = await requests.take();
slowdown.of = values.us ? 'us' : 'acme’s GitHub';
await traffic(4);
const after = await requests.take();

for (const line of tell(before, after, app.get(PerfService))) console.log(line);
await app.close();
stopGitHubs();
