import { STATUS_CODES } from 'node:http';
import { HttpException } from '@nestjs/common';
import { markAsPerfError, type PerfErrorCode } from '../core/perf.error.js';

export type ResilienceErrorCode = Extract<PerfErrorCode, 'PERF_ERR_DEADLINE' | 'PERF_ERR_OPEN' | 'PERF_ERR_BUSY'>;

/** A call that ended without the upstream's answer. */
export interface UnansweredCall {
  readonly upstream: string;
  /** Time since `call()`, or since the command. */
  readonly spentMs: number;
  /** 1 for the first; 0 when nothing was sent. */
  readonly attempt: number;
}

/**
 * An upstream did not answer in time (504), or was not called (503). Nest answers requests with the status; the client reads nothing
 * of the upstream. The error is a `PerfError` and an `HttpException`.
 */
export class ResilienceError extends HttpException {
  override readonly name = 'PerfError';
  readonly upstream: string;
  readonly spentMs: number;
  readonly attempt: number;

  constructor(
    readonly code: ResilienceErrorCode,
    status: 503 | 504,
    call: UnansweredCall,
    message: string,
    /** When to try again, for a `Retry-After` of a filter of yours, seconds; null for a deadline. */
    readonly retryAfterSeconds: number | null = null,
  ) {
    super({ message: CLIENT_MESSAGE[status], error: STATUS_CODES[status], statusCode: status }, status);
    this.upstream = call.upstream;
    this.spentMs = Math.round(call.spentMs);
    this.attempt = call.attempt;
    this.message = `${code}: ${message}`;
  }
}
markAsPerfError(ResilienceError.prototype);

const CLIENT_MESSAGE = {
  503: 'A service that this answer needs is not available. Try again later.',
  504: 'A service that this answer needs did not answer in time.',
} as const;

/** `blockedMs`: the part of it in which our own loop was blocked. */
export function deadlineError(call: UnansweredCall, deadlineMs: number, blockedMs: number): ResilienceError {
  const blocked =
    blockedMs >= 1
      ? ` Our own event loop was blocked for ${Math.round(blockedMs)} ms of it: see the block records.`
      : '';
  return new ResilienceError(
    'PERF_ERR_DEADLINE',
    504,
    call,
    `upstream "${call.upstream}" has not answered within ${Math.round(deadlineMs)} ms.${blocked} ` +
      'Give `call()` a fallback, or raise `deadlineMs`.',
  );
}

/** `budgetMs`: `requestDeadlineMs`. */
export const noTimeLeft = (call: UnansweredCall, budgetMs: number): ResilienceError =>
  new ResilienceError(
    'PERF_ERR_DEADLINE',
    504,
    call,
    `upstream "${call.upstream}" was not called: the request has used up its ${budgetMs} ms (\`requestDeadlineMs\`).`,
  );

export const openError = (call: UnansweredCall, openMs: number): ResilienceError =>
  new ResilienceError(
    'PERF_ERR_OPEN',
    503,
    call,
    `upstream "${call.upstream}" was not called: too many of its calls have failed, it is tried again ${openMs} ms later. ` +
      'Give `call()` a fallback.',
    Math.max(1, Math.ceil(openMs / 1_000)),
  );

export const busyError = (call: UnansweredCall, maxInFlight: number): ResilienceError =>
  new ResilienceError(
    'PERF_ERR_BUSY',
    503,
    call,
    `upstream "${call.upstream}" was not called: ${maxInFlight} calls are under way already (\`maxInFlight\`). ` +
      'Give `call()` a fallback, or raise it.',
    1,
  );
