// A user's code in strict mode: no cast, and what does not fit does not compile.
import {
  type BatchItem,
  Deferrer,
  DeferWork,
  DurableWork,
  type DeferContext,
  type DeferInfo,
  type DeferredBatchWork,
  type DeferredWork,
} from '../../src/index.js';

interface Order {
  id: string;
  total: number;
}
@DurableWork()
class SendReceipt implements DeferredWork<{ orderId: string }> {
  constructor(private readonly sender: Order) {}
  prepare({ result }: DeferContext<Order>) {
    return result.total === 0 ? undefined : { orderId: result.id };
  }
  async run({ orderId }: { orderId: string }, { signal, traceparent }: DeferInfo) {
    await Promise.resolve([orderId, signal, traceparent, this.sender]);
  }
}
class WriteAudit implements DeferredBatchWork<{ row: number }> {
  runBatch(items: readonly BatchItem<{ row: number }>[]) {
    return items.map(({ data }) => data.row.toFixed());
  }
}
class SaveOrder implements DeferredWork<Order> {
  run(order: Order) {
    return order.total;
  }
}

declare const deferrer: Deferrer;
deferrer.defer(SendReceipt, { orderId: 'o-1' });
// @ts-expect-error an order's id is a string
deferrer.defer(SendReceipt, { orderId: 7 });
void deferrer.enqueue(SendReceipt, { orderId: 'o-1' }, { id: 'receipt-o-1', delayMs: 5, priority: 1 });
// @ts-expect-error not what `run` takes
void deferrer.enqueue(SendReceipt, { other: 'o-1' });
// @ts-expect-error `when` belongs to a response
void deferrer.enqueue(SendReceipt, { orderId: 'o-1' }, { when: 'always' });
void deferrer.enqueue(WriteAudit, { row: 1 });
// @ts-expect-error not what `runBatch` takes
void deferrer.enqueue(WriteAudit, { row: 'one' });
// @ts-expect-error `total` is missing
deferrer.defer(SaveOrder, { id: 'o-1' });

/** Picks more than `run` asks for. */
class PickMore implements DeferredWork<{ orderId: string }> {
  prepare({ result }: DeferContext<Order>) {
    return { orderId: result.id, total: result.total };
  }
  run({ orderId }: { orderId: string }) {
    return orderId;
  }
}
class NoData implements DeferredWork {
  run() {}
}
deferrer.defer(PickMore, { orderId: 'o-1' });
deferrer.defer(NoData, undefined);

declare const known: {
  order: Order;
  orNull: Order | null;
  orNone: Order | undefined;
  part: Partial<Order>;
  orText: Order | string;
};
deferrer.defer(SaveOrder, known.order);
void deferrer.enqueue(SaveOrder, known.order);
// @ts-expect-error may be null
void deferrer.enqueue(SaveOrder, known.orNull);
// @ts-expect-error may be undefined
deferrer.defer(SaveOrder, known.orNone);
// @ts-expect-error may lack what `run` needs
void deferrer.enqueue(SaveOrder, known.part);
// @ts-expect-error may be something else
deferrer.defer(SaveOrder, known.orText);
// @ts-expect-error may be null, for `runBatch` as well
void deferrer.enqueue(WriteAudit, null);

class OrdersController {
  @DeferWork(SendReceipt)
  @DeferWork(WriteAudit, { batch: { maxItems: 5 } })
  @DeferWork(({ result, request }) => [result.id, request.user.id])
  @DeferWork(({ result }: DeferContext<Order>) => result.total.toFixed(2))
  async create(): Promise<Order> {
    return { id: 'o-1', total: 1 };
  }
}
void OrdersController;
