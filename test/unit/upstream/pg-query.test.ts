import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import { expect, it } from 'vitest';
import { hearQueries } from '../../../src/upstream/watch/pg-query.js';

/** As pg-cursor does: an error is an event only where somebody listens. */
class Cursor extends EventEmitter {
  submit() {}
  read() {}
  close() {}
  fail() {
    if (this.listenerCount('error') > 0) this.emit('error', new Error('division by zero'));
  }
}

class RowStream extends Readable {
  submit() {}
  override _read() {}
  close() {}
}

/** What becomes of queries of a client that passes on what it is given. */
function heard() {
  const ends: boolean[] = [];
  const client = { query: (given: unknown): unknown => given };
  hearQueries(client, () => (failed) => void ends.push(failed), { isPool: false });
  return { client, ends };
}

it('hears that a cursor fails, which says so to listeners only', () => {
  const { client, ends } = heard();
  const cursor = client.query(new Cursor()) as Cursor;
  cursor.fail();
  expect(ends).toEqual([true]);
});

it('listens to no errors of a stream, which would be nobody else’s', () => {
  const { client } = heard();
  const rows = client.query(new RowStream()) as RowStream;
  expect(rows.listenerCount('error')).toBe(0);
});

it('runs no query object that would be run by awaiting it', () => {
  const { client } = heard();
  let runs = 0;
  // eslint-disable-next-line unicorn/no-thenable -- what is tested
  const lazy = Object.assign(new EventEmitter(), { submit() {}, then: () => (runs += 1) });
  expect(client.query(lazy)).toBe(lazy);
  expect(runs).toBe(0);
});

it("hears of the end of a query whose promise is of the pool's own kind, and leaves it that", async () => {
  class OwnPromise extends Promise<unknown> {}
  const ends: boolean[] = [];
  const answers = [OwnPromise.resolve('rows'), OwnPromise.reject(new Error('no'))];
  // As Bluebird's, which is no Promise.
  const foreign: PromiseLike<unknown> = Object.create(null, {
    // eslint-disable-next-line unicorn/no-thenable -- what is tested
    then: { value: (done: (value: unknown) => unknown) => done('foreign') },
  });
  const client = { query: (_text: string): unknown => answers.shift() ?? foreign };
  hearQueries(client, () => (failed) => void ends.push(failed), { isPool: false });
  const [first, second] = [client.query('SELECT 1'), client.query('SELECT 1 / 0')];
  expect(first).toBeInstanceOf(OwnPromise);
  await expect(first).resolves.toBe('rows');
  await expect(second).rejects.toThrow('no');
  expect(client.query('SELECT 2')).toBe('foreign');
  expect(ends).toEqual([false, true, false]);
});
