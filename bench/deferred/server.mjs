// One variant: `server.mjs <variant> <sink> <adapter> <redis port>`. Each POST /orders makes one job.
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Inject, Post, UseInterceptors } from '@nestjs/common';
import { Queue } from 'bullmq';
import { Deferrer, DeferWork, DurableWork, PerfModule } from 'nestjs-perf';
import { bullmqStore } from 'nestjs-perf/bullmq';
import { tap } from 'rxjs';
import { serveOn } from '../harness/index.mjs';
import { decorate, decorateMethod, readPort, serveNest } from '../overhead/application.mjs';
import { QUEUE } from './pinned-redis.mjs';

const [variant, sink, adapter, redisPort] = process.argv.slice(2);
const connection = { host: '127.0.0.1', port: Number(redisPort) };
const usesRedis = sink.startsWith('redis');
const queue = usesRedis ? new Queue(QUEUE, { connection }) : null;
await queue?.waitUntilReady();

let done = 0;
let busy = 0;
let next = 0;
const order = () => ({ id: `o-${next++}`, total: 99, currency: 'EUR', items: [{ sku: 'A-1', quantity: 2 }] });
const timerMs = Number(sink.split('-')[1]);
const work = async (created) => {
  busy += 1;
  if (usesRedis) await queue.add('order', created);
  else await delay(timerMs);
  busy -= 1;
  done += 1;
};

class TapInterceptor {
  intercept(context, handler) {
    return handler.handle().pipe(tap(async (created) => work(created)));
  }
}
class SaveOrder {
  prepare({ result }) {
    return result;
  }
  run() {}
}
class SaveOrders {
  runBatch() {}
}
for (const type of [SaveOrder, SaveOrders]) DurableWork()(type);
class OrdersController {
  constructor(deferrer) {
    this.deferrer = deferrer;
  }
  async create() {
    const created = order();
    if (variant === 'blocking') await work(created);
    if (variant === 'ours' && usesRedis) this.deferrer.addJob(queue, 'order', created);
    return created;
  }
}
const decorators = [Post()];
if (variant === 'article') decorators.push(UseInterceptors(TapInterceptor));
if (variant === 'ours' && !usesRedis) decorators.push(DeferWork(({ result }) => work(result)));
if (variant === 'durable') decorators.push(DeferWork(SaveOrder, { durable: true }));
if (variant === 'batch')
  decorators.push(DeferWork(SaveOrders, { durable: true, batch: { maxItems: 100, maxWaitMs: 5 } }));
decorateMethod(OrdersController, 'create', ...decorators);
if (variant === 'ours' && usesRedis) Inject(Deferrer)(OrdersController, undefined, 0);
decorate(OrdersController, Controller('orders'));

const ours = ['ours', 'durable', 'batch'].includes(variant);
const store = ['durable', 'batch'].includes(variant)
  ? { store: bullmqStore({ connection, queue: QUEUE, worker: false }) }
  : {};
const defer = { concurrency: 1_000, maxPending: 100_000, ...store };
// Deferred work only: the article's rivals measure no requests either.
const off = {
  latency: false,
  eventLoop: false,
  upstream: false,
  users: false,
  resources: false,
  compression: false,
  sinks: [],
};
const metadata = {
  imports: ours ? [PerfModule.forRoot({ ...off, defer })] : [],
  controllers: [OrdersController],
  providers: [TapInterceptor, SaveOrder, SaveOrders],
};
const app = await serveNest(metadata, { express: adapter === 'express' });

serveOn(readPort(app), {
  /** Waits until every job is done; says how many were since it was last asked. */
  async drain() {
    if (ours) await app.get(Deferrer).idle();
    while (busy > 0) await delay(1);
    const count = done;
    done = 0;
    return count;
  },
});
