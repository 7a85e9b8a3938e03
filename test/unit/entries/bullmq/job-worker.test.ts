import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { JobWorker } from '../../../../src/entries/bullmq/job-worker.js';
import { NO_WORKER } from '../../defer/durable-entry.js';

type Process = (job: object) => Promise<void>;

/** BullMQ's worker while Redis is away: it never gets through with its goodbye. */
class StubWorker extends EventEmitter {
  static last: StubWorker;
  constructor(
    _queue: string,
    readonly process: Process,
  ) {
    super();
    StubWorker.last = this;
  }
  waitUntilReady = async (): Promise<void> => {};
  run = async (): Promise<void> => {};
  pause = async (): Promise<void> => {};
  close = (): Promise<void> => new Promise(() => {});
}

const connection = { connection: { status: 'reconnecting' } as Redis, prefix: 'bull', skipVersionCheck: false };

it('Redis away at the end: its goodbye is not waited for', async () => {
  const bullmq = { Worker: StubWorker } as never;
  const worker = new JobWorker(bullmq, 'mail', connection, { concurrency: 1 }, NO_WORKER);
  await Promise.resolve();
  const startedMs = performance.now();
  await worker.stop(30_000);
  expect(performance.now() - startedMs).toBeLessThan(10_000);
});

it('work that heeds the signal of a shutdown is put back: it has not failed', async () => {
  class DelayedError extends Error {}
  const bullmq = { Worker: StubWorker, DelayedError } as never;
  const run = (_job: unknown, _attempt: number, signal?: AbortSignal): Promise<void> =>
    new Promise((_, reject) => signal!.addEventListener('abort', () => reject(new Error('The operation was aborted'))));
  const worker = new JobWorker(bullmq, 'mail', connection, { concurrency: 1 }, { ...NO_WORKER, run });
  let putBack = 0;
  const moveToDelayed = async (): Promise<void> => void (putBack += 1);
  const data = { work: 'SendReceipt', timeoutMs: 1 };
  const job = { id: '1', name: 'receipt', attemptsMade: 0, data, opts: {}, moveToDelayed };
  const ended = StubWorker.last.process(job).catch((error: unknown) => error);
  await worker.stop(20);
  expect(await ended).toBeInstanceOf(DelayedError);
  expect(putBack).toBe(1);
});

it('BullMQ is not asked to end a worker that never ran: it would take away the listener of errors still to come', async () => {
  class NeverReady extends StubWorker {
    override waitUntilReady = (): Promise<void> => new Promise(() => {});
    override pause = (): Promise<void> => Promise.reject(new Error('asked'));
    override close = (): Promise<void> => Promise.reject(new Error('asked'));
  }
  const worker = new JobWorker({ Worker: NeverReady } as never, 'mail', connection, { concurrency: 1 }, NO_WORKER);
  await expect(worker.pause()).resolves.toBeUndefined();
  await expect(worker.stop(10)).resolves.toBeUndefined();
});

it('a job that Redis refuses to put back has not failed: its lock expires, and it runs again', async () => {
  class DelayedError extends Error {}
  const bullmq = { Worker: StubWorker, DelayedError } as never;
  const reports: string[] = [];
  const report = (_: string, message: string): void => void reports.push(message);
  const host = { ...NO_WORKER, report, findKind: () => ({ whyNot: 'it is newer' }) };
  const worker = new JobWorker(bullmq, 'mail', connection, { concurrency: 1 }, host);
  const refuse = (): Promise<void> =>
    Promise.reject(new Error("READONLY You can't write against a read only replica."));
  const data = { work: 'SendReceipt', timeoutMs: 1 };
  const job = { id: '1', name: 'receipt', attemptsMade: 0, data, opts: {}, updateData: refuse, moveToDelayed: refuse };
  await expect(StubWorker.last.process(job)).rejects.toBeInstanceOf(DelayedError);
  expect(reports.join()).toContain('READONLY');
  await worker.stop(10);
});
