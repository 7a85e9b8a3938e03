import { epochMsOf } from '../../core/clock.js';
import { fromJson, toJson } from '../outbox/json.js';
import type { Origin } from '../request-work.js';
import type { WorkOptions } from '../work-options.js';
import type { NewDurableJob } from './durable-store.js';

/** Durable work as it is kept until its store has it: a job whose data is still text. */
export interface DurableEntry extends Omit<NewDurableJob, 'data' | 'status'> {
  /** How many travel in one job at the most, and how long the first one waits, milliseconds; null: each on its own. */
  readonly together: { readonly maxItems: number; readonly maxWaitMs: number } | null;
  /** JSON, or undefined. */
  readonly json: string | undefined;
}

/** What all entries of one piece of work share. */
export type DurableShape = Pick<DurableEntry, 'work' | 'name' | 'timeoutMs' | 'attempts' | 'together' | 'options'>;

/**
 * @param work its class's name
 * @param batched the class has `runBatch`
 * @param envelopes how many items share an envelope, and how long the first one waits
 */
export function durableShape(
  work: string,
  batched: boolean,
  spec: WorkOptions & { readonly name: string },
  envelopes: { readonly maxJobs: number; readonly maxWaitMs: number },
): DurableShape {
  const { name, timeoutMs, attempts, queue, backoffMs, maxBackoffMs, id, delayMs, priority } = spec;
  const { maxJobs: maxItems, maxWaitMs } = envelopes;
  const enveloped = spec.envelope ? { maxItems, maxWaitMs } : null;
  // What has an id, a delay or a priority of its own is a job of its own.
  const alone = id !== null || delayMs > 0 || priority > 0;
  const together = alone ? null : batched ? spec.batch : enveloped;
  return { work, name, timeoutMs, attempts, together, options: { queue, backoffMs, maxBackoffMs, delayMs, priority } };
}

/** @throws PERF_ERR_SERIALIZE naming `place` */
export function durableEntry(
  id: string,
  shape: DurableShape,
  data: unknown,
  origin: Origin | null,
  place: string,
): DurableEntry {
  return {
    id,
    ...shape,
    requestId: origin?.id ?? null,
    route: origin?.pattern ?? null,
    traceparent: origin?.traceparent ?? null,
    at: Math.round(epochMsOf(performance.now())),
    json: toJson(data, place),
  };
}

/** An entry as its store gets it. `status` null: it is replayed, or belongs to no request. */
export function jobOf(entry: DurableEntry, status: number | null): NewDurableJob {
  const { id, work, name, json, requestId, route, timeoutMs, attempts, at, traceparent, options } = entry;
  const data = fromJson(json);
  return { id, work, name, data, requestId, route, status, timeoutMs, attempts, at, traceparent, options };
}
