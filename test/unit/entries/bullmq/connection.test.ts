import { EventEmitter } from 'node:events';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openConsumer, openProducer, whenAttempted } from '../../../../src/entries/bullmq/connection.js';

/** A client of ioredis. */
class StubClient {
  status = 'ready';
  ended = false;
  disconnect(): void {
    this.ended = true;
  }
  constructor(readonly options: { socketTimeout?: number } = {}) {}
  on(): this {
    return this;
  }
  duplicate(override?: object): StubClient {
    return new StubClient({ ...this.options, ...override });
  }
}
const libraries = { Redis: StubClient } as never;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** As BullMQ connects a worker: 5 uses the client itself, 6 a duplicate. */
function connectWorker(major: number) {
  const { redis, release } = openConsumer(libraries, { socketTimeout: 1_000 }, () => {});
  const client = redis as unknown as StubClient;
  const main = major === 5 ? client : client.duplicate();
  return { main, reads: client.duplicate({ connectionName: 'bull:mail' }), release };
}

it.each([5, 6])('of BullMQ %i both connections may wait for a job for 10 s, and are half open after 20', (major) => {
  const { main, reads } = connectWorker(major);
  expect([main.options.socketTimeout, reads.options.socketTimeout]).toEqual([20_000, 20_000]);
});

it('once released both have ended', () => {
  const { main, reads, release } = connectWorker(6);
  release();
  expect([main.ended, reads.ended]).toEqual([true, true]);
});

it('once released no command fails as that of a closed connection, which BullMQ 5 would repeat for ever', async () => {
  const client = new Redis({ lazyConnect: true });
  const { redis, release } = openConsumer({ Redis } as never, client, () => {});
  const copy = redis.duplicate();
  release();
  client.disconnect();
  await expect(copy.ping()).rejects.toThrow('the application has closed');
  await expect(redis.ping()).rejects.toThrow('the application has closed');
});

it('what BullMQ has ended is not ended again: the timer of ioredis for that would hold the process', () => {
  const { reads, release } = connectWorker(6);
  reads.status = 'end';
  release();
  expect(reads.ended).toBe(false);
});

it('a send waits for a connection that is being made, but not without bound', async () => {
  const client = Object.assign(new EventEmitter(), { status: 'connecting' });
  let sent = 0;
  const send = () => whenAttempted(client as never).then(() => (sent += 1));
  const first = send();
  await vi.advanceTimersByTimeAsync(1);
  expect(sent).toBe(0);
  client.emit('ready');
  await first;
  const second = send();
  await vi.advanceTimersByTimeAsync(10_000);
  await second;
  expect(client.eventNames()).toEqual([]);
});

describe('Sentinels', () => {
  interface Asked {
    sentinelRetryStrategy(times: number): unknown;
  }
  const sentinels = [{ host: '127.0.0.1', port: 1 }];

  it.each([undefined, null, () => null, () => 7])('are asked until the connection is released, given %s', (own) => {
    const { redis, release } = openProducer(libraries, { sentinels, sentinelRetryStrategy: own }, () => {});
    const asked = redis.options as unknown as Asked;
    expect(asked.sentinelRetryStrategy(1)).toEqual(expect.any(Number));
    release();
    expect(asked.sentinelRetryStrategy(2)).toBe(null);
  });
});
