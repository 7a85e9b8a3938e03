import { reasonOf } from '../core/reason.js';
import type { Judged } from './breaker.js';
import { statusOf } from './retry-after.js';

/** How a call ended: the counter it belongs to. */
export type End = 'succeeded' | 'failed' | 'ownDeadlines' | 'refusedOpen' | 'refusedBusy';

/** How an attempt, or a whole call, ended. */
export class Outcome implements Judged {
  constructor(
    readonly end: End,
    /** It was thrown, else returned. */
    readonly thrown: boolean,
    readonly value: unknown,
    /** It says nothing of the upstream, however it ended. */
    private readonly saysNothing = false,
  ) {}

  get judgedAs(): Judged['judgedAs'] {
    if (this.saysNothing) return 'unknown';
    if (this.end === 'succeeded') return 'success';
    return this.end === 'failed' ? 'failure' : 'unknown';
  }
}

/** Decides whether what a call has returned, or thrown, is a failure of the upstream. */
export type IsFailure = (outcome: unknown, thrown: boolean) => boolean;

/** The same, where a rule that throws must not harm the call: it is reported, and what was thrown is a failure. */
export function carefully(isFailure: IsFailure, host: { report(cause: string, message: string): void }): IsFailure {
  return (outcome, thrown) => {
    try {
      return isFailure(outcome, thrown);
    } catch (error) {
      const cause = `\`isFailure\` of an upstream has thrown: ${reasonOf(error)}`;
      host.report(cause, `${cause}. What throws counts as a failure, what returns does not.`);
      return thrown;
    }
  };
}

/** An upstream that answers with a client's mistake is well; one that says "too many requests" is not. */
const isFailureStatus = (status: number): boolean => status >= 500 || status === 429;

/** What counts as a failure by default. */
export function isUpstreamFailure(outcome: unknown, thrown: boolean): boolean {
  if (thrown) return !isAbort(outcome);
  const status = statusOf(outcome);
  return status !== null && isFailureStatus(status);
}

/** The application has ended the call itself, as `fetch`, Node and axios say it. */
export const isAbort = (thrown: unknown): boolean =>
  thrown instanceof Error &&
  (/^(AbortError|CanceledError)$/.test(thrown.name) ||
    /^(ABORT_ERR|ERR_CANCELED)$/.test(String((thrown as { code?: unknown }).code)));
