import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { bullmqStore } from '../../../../src/entries/bullmq.js';
import { jobNamed } from '../../contract/durable-store.contract.js';
import { NO_WORKER } from '../../defer/durable-entry.js';

const NOPERM = new Error("NOPERM this user has no permissions to run the 'info' command");
const client = { status: 'ready', pipeline: () => ({}), duplicate: () => ({ ...client, disconnect: () => {} }) };
let queues: StubQueue[] = [];
let workers: EventEmitter[] = [];
let refused = 2;
let refusal = NOPERM;

/** Of BullMQ 5.0: once INFO was refused, all that it is asked ends with that error. */
class StubQueue extends EventEmitter {
  readonly client: Promise<object>;
  constructor(readonly name: string) {
    super();
    queues.push(this);
    this.client = queues.length <= refused ? Promise.reject(refusal) : Promise.resolve(client);
    this.client.catch((error) => this.emit('error', error));
  }
  addBulk = (): Promise<object> => this.client;
  close = (): Promise<object> => this.client;
  disconnect = (): Promise<object> => this.client;
}

class StubWorker extends EventEmitter {
  constructor() {
    super();
    workers.push(this);
  }
  waitUntilReady = (): Promise<void> => new Promise(() => {});
}

beforeEach(() => {
  [queues, workers, refusal] = [[], [], NOPERM];
  vi.useFakeTimers();
  vi.doMock('bullmq', () => ({ Queue: StubQueue, Worker: StubWorker, createPostgresBackend: undefined }));
});
afterEach(() => {
  vi.doUnmock('bullmq');
  vi.useRealTimers();
});

async function start(report: (cause: string) => void = () => {}) {
  const store = bullmqStore({ connection: client, queue: 'mail' });
  await store.start({ ...NO_WORKER, report });
  store.startWorker!();
  return { store, add: () => store.add([jobNamed('first')], { batch: false }) };
}

it('a queue whose first connection was refused is made anew, and works', async () => {
  refused = 2;
  const { add } = await start();
  await expect(add()).rejects.toBe(NOPERM);
  expect(workers.length).toBe(0);
  await vi.advanceTimersByTimeAsync(5_000);
  await add();
  expect([queues.length, workers.length]).toEqual([3, 1]);
});

it('one that is refused for good is let go once the store closes', async () => {
  refused = Infinity;
  const { store } = await start();
  await vi.advanceTimersByTimeAsync(5_000);
  const closed = store.close();
  await vi.advanceTimersByTimeAsync(1_000);
  await closed;
  const made = queues.length;
  await vi.advanceTimersByTimeAsync(600_000);
  expect(queues.length).toBe(made);
});

it('one that BullMQ 5.40 to 5.55 refuse by themselves is made anew before anybody holds it, without a word', async () => {
  refused = 1;
  refusal = new Error("Stream isn't writeable and enableOfflineQueue options is false");
  const report = vi.fn();
  const { store, add } = await start(report);
  expect(store.queue()).toBe(queues[1]);
  await add();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(store.queue()).toBe(queues[1]);
  expect([queues.length, workers.length, report.mock.calls]).toEqual([2, 1, []]);
});
