import type { Job } from 'bullmq';
import { expect, it } from 'vitest';
import { openEnvelope } from '../../../../src/entries/bullmq/envelope.js';
import { NO_WORKER, entryOf } from '../../defer/durable-entry.js';

it('that a shutdown has stopped halfway is put back, also when an item of it has failed', async () => {
  const items = Array.from({ length: 40 }, (_, i) => ({ ...entryOf(`i-${i}`), data: null, status: null }));
  const ran: string[] = [];
  let isStopping = false;
  const host = {
    ...NO_WORKER,
    run: async ({ id }: { id: string }): Promise<void> => {
      ran.push(id);
      isStopping = true;
      if (id === 'i-0') throw new Error('no such customer');
    },
  };
  const job = { name: 'receipt', attemptsMade: 0, progress: 0, updateProgress: async () => {} } as unknown as Job;
  const signal = new AbortController().signal;
  expect(await openEnvelope(job, items, host, () => isStopping, signal)).toBe(false);
  expect(ran.length).toBeLessThan(40);
});

it('whose items heed the signal of a shutdown is put back', async () => {
  const items = Array.from({ length: 4 }, (_, i) => ({ ...entryOf(`i-${i}`), data: null, status: null }));
  const stopping = new AbortController();
  const host = {
    ...NO_WORKER,
    run: async ({ id }: { id: string }): Promise<void> => {
      if (id === 'i-3') stopping.abort();
      else
        await new Promise((_, reject) => stopping.signal.addEventListener('abort', () => reject(new Error('aborted'))));
    },
  };
  const job = { name: 'receipt', attemptsMade: 0, progress: 0, updateProgress: async () => {} } as unknown as Job;
  expect(await openEnvelope(job, items, host, () => false, stopping.signal)).toBe(false);
});
