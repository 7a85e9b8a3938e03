import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { UpstreamObserver } from '../../../src/upstream/upstream-observer.js';

/** As pg before 8.14, which reads the query that it gets. */
class Client extends EventEmitter {
  readonly texts: string[] = [];
  connect() {}
  escapeIdentifier() {}
  query(config: { text: string }): Promise<void> {
    this.texts.push(config.text);
    return Promise.resolve();
  }
}

class OrdersQuery {
  readonly #table = 'orders';

  get text(): string {
    return `SELECT * FROM ${this.#table}`;
  }
}

it('a query of a class of its own reaches the client as it is, with the private fields that its getters read', async () => {
  const feature = new UpstreamObserver(
    { target: null, maxTargets: 10, maxTimedCalls: 10 },
    { requests: {}, nowMs: () => 0, report: { report() {} } } as never,
    null,
  );
  const client = new Client();
  feature.watch(client);
  await client.query(new OrdersQuery());
  expect(client.texts).toEqual(['SELECT * FROM orders']);
  expect(feature.snapshot().upstream).toMatchObject([{ calls: 1, errors: 0, inFlight: 0 }]);
  feature.drain();
});
