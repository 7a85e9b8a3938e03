import { MAX_TIMER_MS } from '../../core/clock.js';
import { feature, number, object, optional, optionError, string, value, type Option } from '../../core/option.js';
import { isQueueName } from '../../defer/work-options.js';
import type { RedisConnection } from './connection.js';
import type { QueueWorkerOptions } from './job-worker.js';

const concurrency = number({ default: 10, unit: 'a whole number of jobs', min: 1, integer: true });
export const alone = object({ concurrency });
const queueRow = object({
  concurrency,
  limiter: optional(
    object({
      max: number({ default: 1, unit: 'a whole number of jobs', min: 1, integer: true }),
      duration: number({ default: 1_000, unit: 'a number of milliseconds', min: 1 }),
    }),
  ),
});
const isRecord = (given: unknown): given is object =>
  typeof given === 'object' && given !== null && !Array.isArray(given);
const QUEUES = 'an object of queue names and their options';
const queuesRow: Option<ReadonlyMap<string, QueueWorkerOptions>> = {
  expected: QUEUES,
  read(given = {}, path) {
    if (!isRecord(given)) throw optionError(path, QUEUES, given);
    return new Map(
      Object.entries(given).map(([name, options]) => {
        if (!isQueueName(name)) throw optionError(path, 'queue names without `:`', name);
        return [name, queueRow.read(options, `${path}.${name}`)];
      }),
    );
  },
};
/** A Cluster client is duplicated in another way, and its queue names need hash tags: not supported, so not accepted. */
function isConnection(given: unknown): boolean {
  type Given = { isCluster?: unknown; keyPrefix?: string; options?: { keyPrefix?: string } };
  const { isCluster, keyPrefix, options } = (given ?? {}) as Given;
  // BullMQ throws at a prefix of ioredis, but only once it connects.
  return isRecord(given) && isCluster !== true && !(keyPrefix ?? options?.keyPrefix);
}
export const table = object({
  connection: value<RedisConnection>(
    'ioredis options or an ioredis client, of one server (no Cluster) and without `keyPrefix`',
    isConnection,
  ),
  queue: optional(string({ what: 'a queue name without `:`', test: isQueueName })),
  queues: queuesRow,
  worker: feature({ concurrency }),
  spillPath: optional(string({ what: 'a path', test: (path) => path !== '' })),
  spillMaxBytes: number({ default: 1024 ** 3, unit: 'a whole number of bytes', min: 1, integer: true }),
  writeTimeoutMs: number({ default: 5_000, unit: 'a number of milliseconds', min: 1, max: MAX_TIMER_MS }),
});
