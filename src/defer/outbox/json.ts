import { PerfError } from '../../core/perf.error.js';

/**
 * JSON of data that must leave the process; undefined stays undefined. Checked where the work is armed, because there
 * the stack still names the culprit, and taken then, so that later changes to the object do not travel.
 * @throws PERF_ERR_SERIALIZE naming `where`
 */
export function toJson(data: unknown, where: string): string | undefined {
  if (data === undefined) return undefined;
  let json: string | undefined;
  let reason: string;
  try {
    json = JSON.stringify(data);
    reason = `it is a ${typeof data}`;
  } catch (error) {
    reason = error instanceof Error ? error.message.split('\n', 1)[0]! : String(error);
    throw unserializable(where, reason, error);
  }
  if (json === undefined) throw unserializable(where, reason, undefined);
  return json;
}

/** What JSON takes in memory, roughly: V8 keeps one byte a character where all are Latin-1. */
export const bytesOf = (json: string | undefined): number => json?.length ?? 0;

/** The data again; undefined stays undefined. */
export const fromJson = (json: string | undefined): unknown => (json === undefined ? undefined : JSON.parse(json));

function unserializable(where: string, reason: string, cause: unknown): PerfError {
  const message =
    `the data of ${where} must be JSON, but cannot be serialised: ${reason}. ` +
    `Pass plain objects, arrays, strings, numbers, booleans and null.`;
  return new PerfError('PERF_ERR_SERIALIZE', message, { cause });
}
