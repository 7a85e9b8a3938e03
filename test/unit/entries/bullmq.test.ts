import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bullmqStore } from '../../../src/entries/bullmq.js';
import { NO_WORKER } from '../defer/durable-entry.js';

describe('bullmqStore', () => {
  it.each([
    ['shop', 'nestjs-perf-shop'],
    ['@acme/shop', 'nestjs-perf--acme-shop'],
    ['acme-shop', 'nestjs-perf-acme-shop'],
  ])('takes a queue that is named after the application: %s', async (name, queue) => {
    const folder = mkdtempSync(join(tmpdir(), 'perf-queue-'));
    const started = process.argv[1]!;
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name }));
    process.argv[1] = join(folder, 'main.js');
    const store = bullmqStore({ connection: { host: '127.0.0.1', port: 1 }, worker: false });
    process.argv[1] = started;
    rmSync(folder, { recursive: true });
    await store.start(NO_WORKER);
    expect(store.queue().name).toBe(queue);
    await store.close();
  });

  const connection = { host: 'localhost' };
  it.each([
    [
      { connection, queues: ['mail'] },
      '`bullmqStore.queues` must be an object of queue names and their options, got an array of 1.',
    ],
    [
      { connection, queues: { mail: { concurrency: 0 } } },
      '`bullmqStore.queues.mail.concurrency` must be a whole number of jobs of 1 or more, got `0` (number).',
    ],
    [{ connection, queue: 'a:b' }, '`bullmqStore.queue` must be a queue name without `:`, got `"a:b"` (string).'],
    [
      { connection, worker: { concurrency: 0 } },
      '`bullmqStore.worker.concurrency` must be a whole number of jobs of 1 or more, got `0` (number).',
    ],
    [{ connection, worker: 5 }, '`bullmqStore.worker` must be `true`, `false` or an object, got `5` (number).'],
    [{ connection, spillPath: '' }, '`bullmqStore.spillPath` must be the path of a folder, got `""` (string).'],
    [{ connection, spill: 'x' }, '`bullmqStore.spill` is not an option. Known options: '],
  ])('says what is wrong with %j', (options, message) => {
    expect(() => bullmqStore(options as never)).toThrow(`PERF_ERR_OPTION: ${message}`);
  });
});
