import { randomUUID } from 'node:crypto';
import { toEpochMs } from '../../core/clock.js';
import { PerfError } from '../../core/perf.error.js';
import { isThenable } from '../../core/thenable.js';
import { describeOrigin, type Origin } from '../counters.js';
import type { ClassWork } from '../decorator/work-providers.js';
import type { NewDurableJob } from './durable-store.js';

/** Durable work until its store has it: a job whose data is still text. */
export interface DurableEntry extends Omit<NewDurableJob, 'data' | 'status'> {
  /** Limits of the batch that it travels in as one job, for `runBatch`; null: a job of its own. */
  readonly together: { readonly maxItems: number; readonly maxWaitMs: number } | null;
  readonly json: string | undefined;
}

/** @throws PERF_ERR_SERIALIZE naming the work */
export function makeDurableEntry(work: ClassWork, data: unknown, origin: Origin | null): DurableEntry {
  const { name, timeoutMs, attempts, queue, backoffMs, maxBackoffMs, id, delayMs, priority } = work;
  // An entry with an id, a delay or a priority of its own is a job of its own.
  const isAlone = id !== null || delayMs > 0 || priority > 0;
  return {
    // Made before the first send: a bulk that is sent twice is stored once.
    id: id ?? randomUUID(),
    work: work.durableName!,
    name,
    timeoutMs,
    attempts,
    together: isAlone || work.kind === 'one' ? null : work.batch,
    options: { queue, backoffMs, maxBackoffMs, delayMs, priority },
    ...describeOrigin(origin),
    at: Math.round(toEpochMs(performance.now())),
    json: toJson(data, work.label),
  };
}

export function makeDurableJob(entry: DurableEntry, status: number | null): NewDurableJob {
  const { json, together: _together, ...job } = entry;
  return { ...job, status, data: fromJson(json) };
}

/** One line of a spill's file; its data is not serialised again. */
export function writeEntry({ json, ...rest }: DurableEntry): string {
  const head = JSON.stringify(rest);
  return json === undefined ? `${head}\n` : `${head.slice(0, -1)},"data":${json}}\n`;
}

/** The entry of a line; null for a damaged or foreign one: any process may write to the disk. */
export function parseEntry(text: string): DurableEntry | null {
  let data: unknown;
  let rest: Partial<DurableEntry>;
  try {
    ({ data, ...rest } = JSON.parse(text) as { data?: unknown } & Partial<DurableEntry>);
  } catch {
    return null;
  }
  const { id, work, name, timeoutMs, attempts, at, options, together } = rest;
  const hasTexts = [id, work, name].every((one) => typeof one === 'string');
  const hasNumbers = [timeoutMs, attempts, at, options?.backoffMs, options?.maxBackoffMs].every(Number.isFinite);
  const isOneOrMany =
    together === null || (together !== undefined && together.maxItems >= 1 && together.maxWaitMs >= 0);
  if (!hasTexts || !hasNumbers || !isOneOrMany) return null;
  return { ...(rest as DurableEntry), json: data === undefined ? undefined : JSON.stringify(data) };
}

/** Called when the work is armed: later changes to the object do not travel. Undefined stays undefined. @throws PERF_ERR_SERIALIZE naming `where` */
export function toJson(data: unknown, where: string): string | undefined {
  if (data === undefined) return undefined;
  let reason = `it is a ${typeof data}`;
  let cause: unknown;
  try {
    // A promise, or a query that runs when it is awaited, would be `{}`.
    if (isThenable(data)) throw new TypeError('await it first');
    const json = JSON.stringify(data) as string | undefined;
    if (json !== undefined) return json;
  } catch (error) {
    cause = error;
    reason = (error instanceof Error ? error.message : String(error)).split('\n', 1)[0]!;
  }
  const message =
    `the data of ${where} must be JSON, but cannot be serialised: ${reason}. ` +
    `Pass plain objects, arrays, strings, numbers, booleans and null.`;
  throw new PerfError('PERF_ERR_SERIALIZE', message, { cause });
}

/** Rough size of JSON in memory, bytes: V8 keeps one byte a character where all are Latin-1. */
export const countBytes = (json: string | undefined): number => json?.length ?? 0;

export const fromJson = (json: string | undefined): unknown => (json === undefined ? undefined : JSON.parse(json));
