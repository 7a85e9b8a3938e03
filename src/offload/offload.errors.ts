import { STATUS_CODES } from 'node:http';
import { HttpException } from '@nestjs/common';
import { markAsPerfError, PerfError, type PerfErrorCode } from '../core/perf.error.js';
import { reasonOf } from '../core/reason.js';
import { uncloneableIn } from './transferables.js';

/** Nest and filters of the application answer with its status; the message stays here. */
class StatusError extends HttpException {
  override readonly name = 'PerfError';

  constructor(
    readonly code: PerfErrorCode,
    message: string,
    readonly statusCode: 503 | 504,
  ) {
    super({ statusCode, message: STATUS_CODES[statusCode] }, statusCode);
    this.message = `${code}: ${message}`;
  }
}
markAsPerfError(StatusError.prototype);

/** No room for one more call: 503. */
export const full = (name: string, maxPending: number): PerfError =>
  new StatusError(
    'PERF_ERR_OFFLOAD_FULL',
    `"${name}" was refused: every worker thread is busy and \`maxPending\` (${maxPending}) calls wait. ` +
      'Let the client come back, raise `maxPending` or `threads` of offload(), or do less.',
    503,
  );

/** It took too long: 504. */
export const timedOut = (name: string, timeoutMs: number, wasRunning: boolean): PerfError =>
  new StatusError(
    'PERF_ERR_OFFLOAD_TIMEOUT',
    `"${name}" has not ended within \`timeoutMs\` (${timeoutMs})` +
      (wasRunning ? ', and its worker thread was ended.' : ': it was waiting for a worker thread.'),
    504,
  );

/** A worker that ended, or one that cannot do what it is asked for. */
export const offloadError = (message: string, cause?: unknown): PerfError =>
  new PerfError('PERF_ERR_OFFLOAD', message, { cause });

export const closedBefore = (name: string): PerfError =>
  offloadError(`"${name}" was waiting for a worker when the application closed.`);

/** Why a worker has. Longer than other reasons: advice stands at its end. */
export function whyEnded(error: unknown): string {
  const isFull = (error as NodeJS.ErrnoException | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY';
  return `${reasonOf(error, 500)}${isFull ? ' (`heapLimitMb`)' : ''}`;
}

/** Something that cannot go from one thread to the other; `value` tells where in it. */
export function notCloneable(what: string, error: unknown, value?: unknown): PerfError {
  const place = uncloneableIn(value);
  return new PerfError(
    'PERF_ERR_SERIALIZE',
    `${what}${place === null ? '' : `, at ${place},`} cannot go to another thread: ${reasonOf(error)}. ` +
      'Pass plain data (what `structuredClone()` takes): ids instead of entities with methods.',
  );
}

/** `"Reports.render"` cannot be offloaded because of how it is declared. */
export const misplaced = (name: string, why: string): PerfError =>
  new PerfError('PERF_ERR_DECORATOR', `\`@Offload()\` on "${name}": ${why}`);
