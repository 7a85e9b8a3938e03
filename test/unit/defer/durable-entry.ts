import type { DurableEntry } from '../../../src/defer/durable/entry.js';
import type { DurableStoreHost } from '../../../src/index.js';

/** Durable work as it is kept until its store has it. */
export const getOrAdd = (id: string, data: unknown = { id }): DurableEntry => ({
  id,
  work: 'SendReceipt',
  name: 'receipt',
  json: JSON.stringify(data),
  requestId: null,
  traceparent: null,
  route: null,
  timeoutMs: 1_000,
  attempts: 1,
  together: null,
  at: 1,
  options: { queue: null, backoffMs: 1_000, maxBackoffMs: 60_000, delayMs: 0, priority: 0 },
});

/** A process that runs nothing. */
export const NO_WORKER: DurableStoreHost = {
  run: () => Promise.resolve(),
  findKind: () => 'one',
  queues: () => [],
  report: () => {},
};
