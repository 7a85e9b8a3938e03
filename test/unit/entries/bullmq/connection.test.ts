import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { workerConnections } from '../../../../src/entries/bullmq/connection.js';

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
  duplicate(): StubClient {
    return new StubClient();
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** As BullMQ connects a worker, of 5 or 6. */
async function connectWorker(major: number) {
  const client = Promise.resolve(new StubClient());
  const queue = major === 5 ? { client } : { getBackend: () => ({ client }) };
  const connect = await workerConnections({}, queue as never);
  const { options, release } = connect();
  const main = options as unknown as StubClient;
  return { main, reads: main.duplicate(), release };
}

const LONG_MS = 18_000;

it.each([5, 6])('of BullMQ %i both connections are made anew that are half open from the start', async (major) => {
  const { main, reads } = await connectWorker(major);
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect([main.anew, reads.anew]).toEqual([1, 1]);
});

it('both are made anew that are half open after an outage', async () => {
  const { main, reads } = await connectWorker(6);
  for (const one of [main, reads]) one.status = 'reconnecting';
  await vi.advanceTimersByTimeAsync(10 * LONG_MS);
  expect([main.anew, reads.anew]).toEqual([0, 0]);
  for (const one of [main, reads]) one.status = 'connect';
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect([main.anew, reads.anew]).toEqual([1, 1]);
});

it('one that is ready is made anew when a ping is not answered, but not the one with which BullMQ waits', async () => {
  const { main, reads } = await connectWorker(6);
  // Its greeting was answered in time.
  await vi.advanceTimersByTimeAsync(LONG_MS / 2);
  for (const one of [main, reads]) one.status = 'ready';
  await vi.advanceTimersByTimeAsync(10 * LONG_MS);
  expect([main.anew, reads.anew]).toEqual([0, 0]);
  main.answers = false;
  await vi.advanceTimersByTimeAsync(LONG_MS);
  expect([main.anew, reads.anew]).toEqual([1, 0]);
  expect(reads.pings).toBe(0);
});

it('once released both have ended, and no timer is left', async () => {
  const { main, reads, release } = await connectWorker(6);
  release();
  expect([main.ended, reads.ended]).toEqual([true, true]);
  expect(vi.getTimerCount()).toBe(0);
});

it('what BullMQ has ended is not ended again: the timer of ioredis for that would hold the process', async () => {
  const { reads, release } = await connectWorker(6);
  reads.status = 'end';
  release();
  expect(reads.ended).toBe(false);
});
