// An application of its own, to be killed: POST /orders/:id makes one durable job and one job on @nestjs/bullmq's queue.
// Runs on what is built. Arguments: Redis' port, the spill file or `none`, and `worker` for one that works the durable
// jobs off itself and has no queue of its own. Says its own port to its parent; closes when its parent says anything.
import { BullModule, getQueueToken } from '@nestjs/bullmq';
import { Controller, Inject, Param, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Deferrer, DeferWork, DurableWork, PerfModule } from 'nestjs-perf';
import { bullmqStore } from 'nestjs-perf/bullmq';

const [redisPort, spillPath, role] = process.argv.slice(2);
const connection = { host: '127.0.0.1', port: Number(redisPort) };

class Receipt {
  prepare({ result }) {
    return result;
  }
  run() {}
}
DurableWork()(Receipt);

class OrdersController {
  constructor(deferrer, queue) {
    this.deferrer = deferrer;
    this.queue = queue;
  }
  create(id) {
    if (this.queue !== null) this.deferrer.addJob(this.queue, 'welcome', { id });
    return { id };
  }
}
const property = Object.getOwnPropertyDescriptor(OrdersController.prototype, 'create');
for (const decorate of [Post(':id'), DeferWork(Receipt, { durable: true })]) {
  decorate(OrdersController.prototype, 'create', property);
}
Object.defineProperty(OrdersController.prototype, 'create', property);
Param('id')(OrdersController.prototype, 'create', 0);
Controller('orders')(OrdersController);
Inject(Deferrer)(OrdersController, undefined, 0);
Inject(getQueueToken('mail'))(OrdersController, undefined, 1);

const store = bullmqStore({
  connection,
  queue: 'durable',
  worker: role === 'worker',
  ...(spillPath === 'none' ? {} : { spillPath }),
});
const root = {
  module: class AppModule {},
  imports: [
    PerfModule.forRoot({ defer: { store, drainTimeoutMs: role === 'worker' ? 500 : 20_000 } }),
    ...(role === 'worker' ? [] : [BullModule.forRoot({ connection }), BullModule.registerQueue({ name: 'mail' })]),
  ],
  controllers: [OrdersController],
  providers: [Receipt, ...(role === 'worker' ? [{ provide: getQueueToken('mail'), useValue: null }] : [])],
};
const app = await NestFactory.create(root, new FastifyAdapter(), { logger: false });
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
process.once('message', async () => {
  await app.close();
  process.disconnect();
});
process.send({ port: app.getHttpServer().address().port });
