import { STATUS_CODES } from 'node:http';
import { HttpException } from '@nestjs/common';
import { markAsPerfError, PerfError, type PerfErrorCode } from '../core/perf.error.js';
import { describeReason } from '../core/reason.js';

/** Nest and filters of the application answer with its status; the client reads no message. */
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

/** There are no workers: 503. */
export const down = (name: string, why: string): PerfError =>
  new StatusError('PERF_ERR_OFFLOAD_DOWN', `"${name}" was refused: ${why}`, 503);

/** It took too long: 504. */
export const timedOut = (name: string, timeoutMs: number, wasRunning: boolean): PerfError =>
  new StatusError(
    'PERF_ERR_OFFLOAD_TIMEOUT',
    `"${name}" has not ended within \`timeoutMs\` (${timeoutMs})` +
      (wasRunning ? ', and its worker thread was ended.' : ': it was waiting for a worker thread.'),
    504,
  );

/** A worker that ended, or one that cannot do its task. */
export const offloadError = (message: string, cause?: unknown): PerfError =>
  new PerfError('PERF_ERR_OFFLOAD', message, { cause });

/** A value that cannot go from one thread to the other. */
export const notCloneable = (what: string, error: unknown): PerfError =>
  new PerfError(
    'PERF_ERR_SERIALIZE',
    `${what} cannot go to another thread: ${describeReason(error)}. ` +
      'Pass plain data (values that `structuredClone()` takes): ids instead of entities with methods.',
  );

/** `"Reports.render"` cannot be offloaded because of how it is declared. */
export const misplaced = (name: string, why: string): PerfError =>
  new PerfError('PERF_ERR_DECORATOR', `\`@Offload()\` on "${name}": ${why}`);
