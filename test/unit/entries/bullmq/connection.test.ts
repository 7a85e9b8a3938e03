import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openConsumer, openProducer, whenAttempted } from '../../../../src/entries/bullmq/connection.js';

/** A client of ioredis, whose server answers its pings or does not. */
class StubClient {
  status = 'connect';
  anew = 0;
  ended = false;
  answers = true;
  pings = 0;
  disconnect(reconnect = false): void {
    if (reconnect) this.anew += 1;
    else this.ended = true;
  }
  ping(): Promise<void> {
    this.pings += 1;
    return this.answers ? Promise.resolve() : new Promise(() => {});
  }
  constructor(readonly options: object = {}) {}
  on(): this {
    return this;
  }
  duplicate(override?: object): StubClient {
    return new StubClient(override);
  }
}
const libraries = { Redis: StubClient } as never;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** As BullMQ connects a worker: 5 uses the client itself, 6 a duplicate. */
function connectWorker(major: number) {
  const { redis, release } = openConsumer(libraries, {}, () => {});
  const client = redis as unknown as StubClient;
  const main = major === 5 ? client : client.duplicate();
  return { main, reads: client.duplicate({ connectionName: 'bull:mail' }), release };
}

const LONG_MS = 18_000;

it.each([5, 6])('of BullMQ %i both connections are made anew that are half open from the start', async (major) => {
  const { main, reads } = connectWorker(major);
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect([main.anew, reads.anew]).toEqual([1, 1]);
});

it('both are made anew that are half open after an outage', async () => {
  const { main, reads } = connectWorker(6);
  for (const one of [main, reads]) one.status = 'reconnecting';
  await vi.advanceTimersByTimeAsync(10 * LONG_MS);
  expect([main.anew, reads.anew]).toEqual([0, 0]);
  for (const one of [main, reads]) one.status = 'connect';
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect([main.anew, reads.anew]).toEqual([1, 1]);
});

it.each([5, 6])(
  'of BullMQ %i one that is ready is made anew when a ping is not answered, but not the one with which BullMQ waits',
  async (major) => {
    const { main, reads } = connectWorker(major);
    // Its greeting was answered in time.
    await vi.advanceTimersByTimeAsync(LONG_MS / 2);
    for (const one of [main, reads]) one.status = 'ready';
    await vi.advanceTimersByTimeAsync(10 * LONG_MS);
    expect([main.anew, reads.anew]).toEqual([0, 0]);
    main.answers = false;
    await vi.advanceTimersByTimeAsync(LONG_MS);
    expect([main.anew, reads.anew]).toEqual([1, 0]);
    expect(reads.pings).toBe(0);
  },
);

it('once released both have ended, and no timer is left', async () => {
  const { main, reads, release } = connectWorker(6);
  release();
  expect([main.ended, reads.ended]).toEqual([true, true]);
  expect(vi.getTimerCount()).toBe(0);
});

it('what BullMQ has ended is not ended again: the timer of ioredis for that would hold the process', async () => {
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
    sentinelCommandTimeout: number;
    sentinelRetryStrategy(times: number): unknown;
  }
  const sentinels = [{ host: '127.0.0.1', port: 1 }];

  it('that owe an answer are given up, after the time that the application has set', () => {
    const askedOf = (own: object) => openProducer(libraries, { sentinels, ...own }, () => {}).redis.options as Asked;
    expect(askedOf({}).sentinelCommandTimeout).toBe(3_000);
    expect(askedOf({ sentinelCommandTimeout: 500 }).sentinelCommandTimeout).toBe(500);
  });

  it.each([undefined, null, () => null, () => 7])('are asked until the connection is released, given %s', (own) => {
    const { redis, release } = openProducer(libraries, { sentinels, sentinelRetryStrategy: own }, () => {});
    const asked = redis.options as Asked;
    expect(asked.sentinelRetryStrategy(1)).toEqual(expect.any(Number));
    release();
    expect(asked.sentinelRetryStrategy(2)).toBe(null);
  });
});
