import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Inject, Injectable, Post } from '@nestjs/common';
import { Deferrer, DeferWork, DurableWork, type DeferContext, type DeferredWork } from 'nestjs-perf';
import { table } from './table.js';

/** Time that a mail provider takes to accept a receipt. */
const MAIL_MS = 25;

@Injectable()
export class SendReceipt implements DeferredWork<number> {
  sent = 0;
  prepare({ result }: DeferContext): number {
    return (result as { id: number }).id;
  }
  async run(): Promise<void> {
    await delay(MAIL_MS);
    this.sent += 1;
  }
}

/** Survives a restart. */
@DurableWork('book-order')
@Injectable()
export class BookOrder implements DeferredWork<{ id: number }> {
  prepare({ result }: DeferContext): { id: number } {
    return { id: (result as { id: number }).id };
  }
  async run(): Promise<void> {
    await delay(2);
  }
}

/** An order whose client waits for the receipt, and one whose client does not. */
@Controller('checkout')
export class CheckoutController {
  private lastId = 0;
  constructor(@Inject(SendReceipt) private readonly receipt: SendReceipt) {}

  @Post('awaited')
  async awaited() {
    const order = { id: ++this.lastId };
    await this.receipt.run();
    return order;
  }

  @Post('deferred')
  @DeferWork(SendReceipt)
  deferred() {
    return { id: ++this.lastId };
  }
}

interface Running {
  get<T>(type: new (...parameters: never[]) => T): T;
}

/** Places orders both ways, eight clients at a time, and shows what their clients waited. */
export async function receiptsReport(app: Running, url: string, orders = 400): Promise<string> {
  const { sent: before } = app.get(SendReceipt);
  const rows = [];
  for (const way of ['awaited', 'deferred']) {
    const { latenciesMs, ordersPerS } = await place(`${url}/checkout/${way}`, orders);
    const at = (q: number): string => latenciesMs[Math.ceil(q * orders) - 1]!.toFixed(1);
    rows.push([`receipt ${way}`, orders, at(0.5), at(0.99), Math.round(ordersPerS)]);
  }
  await app.get(Deferrer).idle();
  const sent = app.get(SendReceipt).sent - before;
  return `${table(['order', 'orders', 'client p50 ms', 'client p99 ms', 'orders/s'], rows)}\n${sent} receipts for ${2 * orders} orders.`;
}

async function place(url: string, orders: number): Promise<{ latenciesMs: number[]; ordersPerS: number }> {
  const latenciesMs: number[] = [];
  let left = orders;
  const startedMs = performance.now();
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const sentMs = performance.now();
      const headers = { 'x-user': `user-${left % 120}` };
      await (await fetch(url, { method: 'POST', headers })).arrayBuffer();
      latenciesMs.push(performance.now() - sentMs);
    }
  };
  await Promise.all(Array.from({ length: 8 }, client));
  const ordersPerS = (orders * 1_000) / (performance.now() - startedMs);
  return { latenciesMs: latenciesMs.sort((a, b) => a - b), ordersPerS };
}
