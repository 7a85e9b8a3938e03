import { PerfError, type PerfErrorCode } from '../core/perf.error.js';

/** Has the shape of the package http-errors, which Nest's own exception filter answers with its status; the message stays here. */
class StatusError extends PerfError {
  readonly expose = false;
  readonly status: number;

  constructor(
    code: PerfErrorCode,
    message: string,
    readonly statusCode: number,
  ) {
    super(code, message);
    this.status = statusCode;
  }
}

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

/** Something that cannot go from one thread to the other. */
export const notCloneable = (what: string, why: string): PerfError =>
  new PerfError(
    'PERF_ERR_SERIALIZE',
    `${what} cannot go to another thread: ${why}. Pass plain data (what \`structuredClone()\` takes): ids instead of entities with methods.`,
  );

/** `"Reports.render"` cannot be offloaded because of how it is declared. */
export const misplaced = (name: string, why: string): PerfError =>
  new PerfError('PERF_ERR_DECORATOR', `\`@Offload()\` on "${name}": ${why}`);
