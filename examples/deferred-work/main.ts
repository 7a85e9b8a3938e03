// npm run example -- deferred-work: an order is answered at once; its receipt, audit line and cache warm-up come after.
import { setTimeout as delay } from 'node:timers/promises';
import { Body, Controller, Inject, Injectable, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { defer, Deferrer, DeferWork, PerfModule, type DeferContext, type DeferredWork } from 'nestjs-perf';

interface Order {
  id: string;
  email: string;
}

/** A class: found in the module's providers, with all that it injects. */
@Injectable()
class SendReceipt implements DeferredWork<{ to: string; orderId: string }> {
  /** At the handler's end: pick plain data, since the request will be gone. */
  prepare({ result }: DeferContext) {
    const { id, email } = result as Order;
    return { to: email, orderId: id };
  }

  /** After the response. */
  async run({ to, orderId }: { to: string; orderId: string }) {
    await delay(100);
    console.log(`receipt for ${orderId} sent to ${to}`);
  }
}

/** A service that knows nothing of controllers defers as well. */
@Injectable()
class Catalogue {
  constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {}
  refreshSoon() {
    this.deferrer.defer(() => console.log('catalogue refreshed'), { name: 'refresh the catalogue' });
  }
}

@Controller('orders')
@DeferWork(({ requestId, status }) => console.log(`audit: ${requestId} answered ${status}`), { when: 'always' })
class OrdersController {
  constructor(@Inject(Catalogue) private readonly catalogue: Catalogue) {}

  @Post()
  @DeferWork(SendReceipt, { attempts: 3, timeoutMs: 5_000 })
  create(@Body() { email }: { email: string }): Order {
    this.catalogue.refreshSoon();
    defer(() => console.log('deferred without injection'));
    return { id: 'order-1', email };
  }
}

@Module({
  imports: [PerfModule.forRoot()],
  controllers: [OrdersController],
  providers: [SendReceipt, Catalogue],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] });
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');

const startedMs = performance.now();
const response = await fetch(`${await app.getUrl()}/orders`, {
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-request-id': 'request-1' },
  body: JSON.stringify({ email: 'ada@example.org' }),
});
console.log(
  `answered ${response.status} after ${Math.round(performance.now() - startedMs)} ms: ${await response.text()}`,
);
// Waits for what was accepted, before any module loses its connections.
await app.close();
console.log(app.get(Deferrer).stats());
