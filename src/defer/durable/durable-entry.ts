import { randomUUID } from 'node:crypto';
import { epochMsOf } from '../../core/clock.js';
import { nameOrigin, type Origin } from '../counters.js';
import type { ClassWork } from '../decorator/work-providers.js';
import { fromJson, toJson } from '../outbox/json.js';
import type { NewDurableJob } from './durable-store.js';

/** Durable work as it is kept until its store has it: a job whose data is still text. */
export interface DurableEntry extends Omit<NewDurableJob, 'data' | 'status'> {
  /** How many travel in one job at the most, and how long the first one waits, milliseconds; null: each on its own. */
  readonly together: { readonly maxItems: number; readonly maxWaitMs: number } | null;
  readonly json: string | undefined;
}

/** @throws PERF_ERR_SERIALIZE naming the work's place */
export function durableEntry(work: ClassWork, data: unknown, origin: Origin | null): DurableEntry {
  const { name, timeoutMs, attempts, queue, backoffMs, maxBackoffMs, id, delayMs, priority } = work;
  // An entry with an id, a delay or a priority of its own is a job of its own.
  const alone = id !== null || delayMs > 0 || priority > 0;
  return {
    // Made before the first send: a bulk that is sent twice is stored once.
    id: id ?? randomUUID(),
    work: work.durableName!,
    name,
    timeoutMs,
    attempts,
    together: alone || work.kind === 'one' ? null : work.batch,
    options: { queue, backoffMs, maxBackoffMs, delayMs, priority },
    ...nameOrigin(origin),
    at: Math.round(epochMsOf(performance.now())),
    json: toJson(data, work.place),
  };
}

export function makeDurableJob(entry: DurableEntry, status: number | null): NewDurableJob {
  const { json, together: _, ...job } = entry;
  return { ...job, status, data: fromJson(json) };
}
