// npm run example -- durable-work: an API whose receipts another process sends, through BullMQ. Needs a Redis:
// REDIS_URL, else one on port 6379.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Deferrer, PerfModule } from 'nestjs-perf';
import { bullmqStore } from 'nestjs-perf/bullmq';
import { OrdersController, SendReceipt } from './orders.js';

const redisUrl = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';

@Module({
  imports: [
    PerfModule.forRoot({
      // `worker: false`: this process only answers requests.
      defer: { store: bullmqStore({ connection: redisUrl, queue: 'receipts', worker: false }) },
    }),
  ],
  controllers: [OrdersController],
  providers: [SendReceipt],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] });
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
for (const id of ['order-1', 'order-2', 'order-3']) {
  const response = await fetch(`${await app.getUrl()}/orders`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-request-id': `request-${id}` },
    body: JSON.stringify({ id }),
  });
  console.log(`answered ${response.status}`);
}
await app.get(Deferrer).idle();
const { accepted, stored } = app.get(Deferrer).stats();
console.log(`accepted ${accepted}, stored ${stored}; now the worker starts`);

const worker = fork(new URL('worker.js', import.meta.url), ['worker'], {
  stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
});
let said = '';
worker.stdout?.setEncoding('utf8').on('data', (text: string) => {
  said += text;
  process.stdout.write(text);
  // Receipts are counted, not lines: the worker logs a blocked event loop too.
  if (said.split('worker: receipt for ').length > 3) worker.kill('SIGTERM');
});
await once(worker, 'exit');
await app.close();
