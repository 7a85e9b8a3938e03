import { epochMsOf } from '../../core/clock.js';
import type { DeferEngine } from '../defer-engine.js';
import { toJson } from '../outbox/serialize.js';
import type { Origin } from '../tasks/task.js';
import type { WorkOptions } from '../work-options.js';
import type { JournalEntry } from './durable-store.js';

/** What all entries of one piece of work share. Made once for a handler; entries keep its objects. */
export type DurableShape = Pick<JournalEntry, 'work' | 'name' | 'timeoutMs' | 'attempts' | 'together' | 'options'>;

/** What durable work is, wherever it was started. */
export interface DurableSpec extends Omit<WorkOptions, 'name'> {
  readonly name: string;
  /** The class's name. */
  readonly work: string;
  /** The class has `runBatch`. */
  readonly batched: boolean;
  /** Null or left out: made up. */
  readonly id?: string | null;
  readonly delayMs?: number;
  readonly priority?: number;
}

export function durableShape({ options }: Pick<DeferEngine, 'options'>, spec: DurableSpec): DurableShape {
  const {
    work,
    name,
    timeoutMs,
    attempts,
    queue,
    backoffMs,
    maxBackoffMs,
    id = null,
    delayMs = 0,
    priority = 0,
  } = spec;
  const { maxJobs: maxItems, maxWaitMs } = options.batch;
  const enveloped = spec.envelope ? { maxItems, maxWaitMs } : null;
  // What has an id, a delay or a priority of its own is a job of its own.
  const alone = id !== null || delayMs > 0 || priority > 0;
  return {
    work,
    name,
    timeoutMs,
    attempts,
    together: alone ? null : spec.batched ? spec.batch : enveloped,
    options: { queue, backoffMs, maxBackoffMs, delayMs, priority },
  };
}

/**
 * Durable work as it is kept until its store has it.
 * @throws PERF_ERR_SERIALIZE naming `place`
 */
export function durableEntry(
  id: string,
  { work, name, timeoutMs, attempts, together, options }: DurableShape,
  data: unknown,
  origin: Origin | null,
  place: string,
): JournalEntry {
  return {
    id,
    work,
    name,
    requestId: origin?.id ?? null,
    route: origin?.pattern ?? null,
    traceparent: origin?.traceparent ?? null,
    timeoutMs,
    attempts,
    at: Math.round(epochMsOf(performance.now())),
    together,
    json: toJson(data, place),
    options,
  };
}
