import { feature, number, object, optional, optionError, string, type Option } from '../../core/option.js';
import { bytes, duration, folderPath, keyPrefix, timeout } from '../../core/shared-options.js';
import { isQueueName } from '../../defer/work-options.js';
import { connectionOption } from '../redis/connection.js';
import type { RedisConnection } from './connection.js';
import type { QueueWorkerOptions } from './job-worker.js';

const concurrency = number({ default: 10, unit: 'a whole number of jobs', min: 1, integer: true });
export const alone = object({ concurrency });
const queueRow = object({
  concurrency,
  limiter: optional(
    object({
      max: number({ default: 1, unit: 'a whole number of jobs', min: 1, integer: true }),
      duration: duration({ default: 1_000, min: 1 }),
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
export const table = object({
  // BullMQ's queues in a Cluster need hash tags in their names.
  connection: connectionOption<RedisConnection>({ cluster: false }),
  prefix: keyPrefix,
  queue: optional(string({ what: 'a queue name without `:`', test: isQueueName })),
  queues: queuesRow,
  worker: feature({ concurrency }),
  spillPath: optional(folderPath),
  spillMaxBytes: bytes({ default: 1024 ** 3, min: 1 }),
  writeTimeoutMs: timeout({ default: 5_000, min: 1 }),
});
