// A small shop that uses every feature the way the README shows it: injection by class, no change in main.ts.
import { Readable } from 'node:stream';
import { Body, Controller, Get, Inject, Injectable, Param, Post, StreamableFile } from '@nestjs/common';
import { type DeferContext, Deferrer, type DeferredWork, DeferWork, DurableWork, Experiments } from 'nestjs-perf';

/** What deferred work has done, in this process. */
@Injectable()
export class Sent {
  readonly receipts: { orderId: string; attempt: number }[] = [];
  readonly audits: string[] = [];
}

@Injectable()
@DurableWork()
export class SendReceipt implements DeferredWork<{ orderId: string }> {
  constructor(@Inject(Sent) private readonly sent: Sent) {}
  prepare({ result }: DeferContext) {
    return { orderId: (result as { id: string }).id };
  }
  run({ orderId }: { orderId: string }, { attempt }: { attempt: number }) {
    this.sent.receipts.push({ orderId, attempt });
  }
}

export const FEED = Array.from({ length: 3_000 }, (_, id) => ({ id, callsign: `FL${id}`, altitude: 30_000 + id }));

@Controller()
export class ShopController {
  constructor(
    private readonly deferrer: Deferrer,
    private readonly experiments: Experiments,
    private readonly sent: Sent,
  ) {}

  @Get('users/:id')
  findOne(@Param('id') id: string) {
    this.deferrer.defer(() => this.sent.audits.push(id), { name: 'audit' });
    return { id, fast: this.experiments.check('fast') };
  }

  @Get('block')
  block() {
    const end = performance.now() + 150;
    while (performance.now() < end);
    return 'done';
  }

  @Get('feed')
  feed() {
    return FEED;
  }

  @Get('export')
  export() {
    const parts = JSON.stringify(FEED).match(/.{1,7000}/g)!;
    return new StreamableFile(Readable.from(parts.map((part) => Buffer.from(part))), { type: 'application/json' });
  }
}

/** Apart from the others, because it needs a store. */
@Controller('orders')
export class OrdersController {
  @Post()
  @DeferWork(SendReceipt, { durable: true })
  create(@Body() order: { id: string }) {
    return order;
  }
}
