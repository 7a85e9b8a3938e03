import { Body, Controller, Injectable, Post } from '@nestjs/common';
import { DeferWork, DurableWork, type DeferContext, type DeferInfo, type DeferredWork } from 'nestjs-perf';

/** Both processes provide it: the API prepares, the worker runs. */
@Injectable()
@DurableWork()
export class SendReceipt implements DeferredWork<{ orderId: string }> {
  prepare({ result }: DeferContext) {
    return { orderId: (result as { id: string }).id };
  }
  run({ orderId }: { orderId: string }, { attempt, requestId }: DeferInfo) {
    console.log(
      `process ${process.argv[2] ?? 'api'}: receipt for ${orderId}, attempt ${attempt}, request ${requestId}`,
    );
  }
}

@Controller('orders')
export class OrdersController {
  @Post()
  @DeferWork(SendReceipt, { durable: true, attempts: 3 })
  create(@Body() { id }: { id: string }) {
    return { id };
  }
}
