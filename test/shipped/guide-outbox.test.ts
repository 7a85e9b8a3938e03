import { PGlite } from '@electric-sql/pglite';
import {
  Body,
  Controller,
  Inject,
  Injectable,
  Post,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bullmqStore } from '../../src/entries/bullmq.js';
import { Deferrer, DurableWork, type DeferredWork } from '../../src/index.js';
import { connection, queueName } from '../fixtures/redis.js';
import { until } from '../fixtures/until.js';
import { startDeferring } from '../fixtures/works.js';

// The outbox of docs/durable-work.md, on PostgreSQL.

const DATABASE = 'database';

@Injectable()
class Sent {
  readonly orders: string[] = [];
}

@Injectable()
@DurableWork()
class SendReceipt implements DeferredWork<{ orderId: string }> {
  constructor(@Inject(Sent) private readonly sent: Sent) {}
  run({ orderId }: { orderId: string }): void {
    this.sent.orders.push(orderId);
  }
}

interface OutboxRow {
  id: string;
  data: { orderId: string };
}

@Injectable()
class Outbox implements OnApplicationBootstrap, OnModuleDestroy {
  private timer: NodeJS.Timeout | undefined;
  constructor(
    @Inject(DATABASE) private readonly database: PGlite,
    @Inject(Deferrer) private readonly deferrer: Deferrer,
  ) {}

  /** One row: the handler asks for it after its response. */
  async send(id: string): Promise<void> {
    const { rows } = await this.database.query<OutboxRow>('SELECT id, data FROM outbox WHERE id = $1', [id]);
    for (const row of rows) await this.hand(row);
  }

  /** Rows whose process died before it could hand them over. */
  async sweep(): Promise<void> {
    const { rows } = await this.database.query<OutboxRow>(
      "SELECT id, data FROM outbox WHERE at < now() - interval '100 milliseconds' ORDER BY at LIMIT 500",
    );
    for (const row of rows) await this.hand(row);
  }

  private async hand({ id, data }: OutboxRow): Promise<void> {
    await this.deferrer.enqueue(SendReceipt, data, { id });
    await this.database.query('DELETE FROM outbox WHERE id = $1', [id]);
  }

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.sweep().catch(() => {}), 50);
  }
  onModuleDestroy(): void {
    clearInterval(this.timer);
  }
}

@Controller('orders')
class OrdersController {
  constructor(
    @Inject(DATABASE) private readonly database: PGlite,
    @Inject(Deferrer) private readonly deferrer: Deferrer,
    @Inject(Outbox) private readonly outbox: Outbox,
  ) {}
  @Post()
  async create(@Body() { id, fails }: { id: string; fails?: boolean }) {
    await this.database.transaction(async (transaction) => {
      await transaction.query('INSERT INTO orders (id) VALUES ($1)', [id]);
      await transaction.query('INSERT INTO outbox (id, data) VALUES ($1, $2)', [id, { orderId: id }]);
      if (fails === true) throw new Error('rolled back');
    });
    this.deferrer.defer(() => this.outbox.send(id));
    return { id };
  }
}

let database: PGlite;
beforeAll(async () => {
  database = new PGlite();
  await database.exec(`
    CREATE TABLE orders (id text PRIMARY KEY);
    CREATE TABLE outbox (id text PRIMARY KEY, data jsonb NOT NULL, at timestamptz NOT NULL DEFAULT now());
  `);
});
afterAll(() => database.close());

async function start() {
  const metadata = {
    controllers: [OrdersController],
    providers: [Sent, SendReceipt, Outbox, { provide: DATABASE, useValue: database }],
  };
  const app = await startDeferring('fastify', metadata, { store: bullmqStore({ connection, queue: queueName() }) });
  const post = (body: object): Promise<Response> =>
    fetch(`${app.url}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const left = async (): Promise<number> => (await database.query('SELECT id FROM outbox')).rows.length;
  return { post, left, sent: app.app.get(Sent).orders };
}

it('sends a receipt for each order that is committed, once, and none for one that is rolled back', async () => {
  const { post, left, sent } = await start();
  const ids = Array.from({ length: 20 }, (_, i) => `o-${i}`);
  await Promise.all(ids.map((id) => post({ id })));
  expect((await post({ id: 'never', fails: true })).status).toBe(500);
  await until('all receipts', () => sent.length === 20);
  await until('the outbox to be empty', async () => (await left()) === 0);
  expect(sent.toSorted()).toEqual(ids.toSorted());
});

it('sends what a process that died has left, although it is handed over by two at once', async () => {
  await database.query("INSERT INTO outbox (id, data, at) VALUES ('left', $1, now() - interval '1 minute')", [
    { orderId: 'left' },
  ]);
  const first = await start();
  await until('it to be sent', () => first.sent.includes('left'));
  await until('the outbox to be empty', async () => (await first.left()) === 0);
  expect(first.sent).toEqual(['left']);
});
