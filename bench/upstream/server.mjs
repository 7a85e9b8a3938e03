// One route, `GET /orders/:id`: one fetch and three Redis commands. `<bare|default|no-upstream|opentelemetry> <url> <Redis port>`
import { createRequire } from 'node:module';
import { serveOn } from '../harness/index.mjs';

const [which, url, redisPort] = process.argv.slice(2);
if (which === 'opentelemetry') await import('../peers/opentelemetry-clients.mjs');

const { Controller, Get, Param } = await import('@nestjs/common');
const { decorate, decorateMethod, readPort, serveNest } = await import('../overhead/application.mjs');
// By `require`, which OpenTelemetry's instrumentation hears.
const { Redis } = createRequire(import.meta.url)('ioredis');

const redis = new Redis(Number(redisPort), '127.0.0.1');
await redis.mset('order:42', 'x', 'user:42', 'x', 'cart:42', 'x');

class OrdersController {
  async findOne(id) {
    const price = await (await fetch(url)).json();
    const [order, user] = await Promise.all([redis.get(`order:${id}`), redis.get(`user:${id}`)]);
    return { id, order, user, cart: await redis.get(`cart:${id}`), price };
  }
}
decorateMethod(OrdersController, 'findOne', Get(':id'));
Param('id')(OrdersController.prototype, 'findOne', 0);
decorate(OrdersController, Controller('orders'));

const OPTIONS = { default: {}, 'no-upstream': { upstream: false } };
const imports = [];
if (which in OPTIONS) {
  const { PerfModule } = await import('nestjs-perf');
  imports.push(PerfModule.forRoot(OPTIONS[which]));
}
serveOn(readPort(await serveNest({ imports, controllers: [OrdersController] })));
