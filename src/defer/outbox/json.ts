import { PerfError } from '../../core/perf.error.js';
import { isThenable } from '../../core/thenable.js';

/**
 * JSON of data that must leave the process; undefined stays undefined. Taken where the work is armed: there the stack
 * names the culprit, and later changes to the object do not travel.
 * @throws PERF_ERR_SERIALIZE naming `where`
 */
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
