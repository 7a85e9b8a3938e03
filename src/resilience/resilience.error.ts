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

const CLIENT_MESSAGE = {
  503: 'A service that this answer needs is not available. Try again later.',
  504: 'A service that this answer needs did not answer in time.',
} as const;

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
    { upstream, spentMs, attempt }: UnansweredCall,
    problem: string,
    /** When to try again, for a `Retry-After` of a filter of yours, seconds; null for a deadline. */
    readonly retryAfterSeconds: number | null = null,
  ) {
    const status = code === 'PERF_ERR_DEADLINE' ? 504 : 503;
    super({ message: CLIENT_MESSAGE[status], error: STATUS_CODES[status], statusCode: status }, status);
    this.upstream = upstream;
    this.spentMs = Math.round(spentMs);
    this.attempt = attempt;
    this.message = `${code}: upstream "${upstream}" ${problem}`;
  }
}
markAsPerfError(ResilienceError.prototype);

/** `blockedMs`: the part of it in which our own loop was blocked. */
export function deadlineError(call: UnansweredCall, deadlineMs: number, blockedMs: number): ResilienceError {
  const blocked =
    blockedMs >= 1
      ? ` Our own event loop stood still for ${Math.round(blockedMs)} ms of it: see the block records.`
      : '';
  const problem = `has not answered within ${Math.round(deadlineMs)} ms.${blocked}`;
  return new ResilienceError(
    'PERF_ERR_DEADLINE',
    call,
    `${problem} Give \`call()\` a fallback, or raise \`deadlineMs\`.`,
  );
}

/** `budgetMs`: `requestDeadlineMs`. */
export function noTimeLeft(call: UnansweredCall, budgetMs: number): ResilienceError {
  const problem = `was not called: the request has used up its ${budgetMs} ms (\`requestDeadlineMs\`).`;
  return new ResilienceError('PERF_ERR_DEADLINE', call, problem);
}

/** `openForMs`: 0 while other calls try it. */
export function openError(call: UnansweredCall, openForMs: number): ResilienceError {
  const next = openForMs === 0 ? 'other calls try it again now' : `it is tried again in ${openForMs} ms`;
  const problem = `was not called: too many of its calls have failed, ${next}. Give \`call()\` a fallback.`;
  return new ResilienceError('PERF_ERR_OPEN', call, problem, Math.max(1, Math.ceil(openForMs / 1_000)));
}

export function busyError(call: UnansweredCall, maxInFlight: number): ResilienceError {
  const problem = `was not called: ${maxInFlight} calls are under way already (\`maxInFlight\`). Give \`call()\` a fallback, or raise it.`;
  return new ResilienceError('PERF_ERR_BUSY', call, problem, 1);
}
