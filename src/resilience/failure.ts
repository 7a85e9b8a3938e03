import { describeReason } from '../core/reason.js';

/** How a call, or one attempt of it, ended. */
export interface Outcome {
  /** The counter for it. */
  readonly end: 'succeeded' | 'failed' | 'ownDeadlines' | 'refusedOpen' | 'refusedBusy';
  /** True: `value` was thrown, else returned. */
  readonly thrown: boolean;
  readonly value: unknown;
}

/** Decides whether the value that a call returned, or threw, is a failure of the upstream. */
export type IsFailure = (outcome: unknown, thrown: boolean) => boolean;

/** Wraps a rule of the application: one that throws is reported, and whatever was thrown is a failure. */
export function carefully(isFailure: IsFailure, host: { report(cause: string, message: string): void }): IsFailure {
  return (outcome, thrown) => {
    try {
      return isFailure(outcome, thrown);
    } catch (error) {
      const cause = `\`isFailure\` of an upstream has thrown: ${describeReason(error)}`;
      host.report(cause, `${cause}. A call that throws counts as a failure, one that returns does not.`);
      return thrown;
    }
  };
}

/** The default rule: a client's mistake is an answer, "too many requests" is not. */
export function isUpstreamFailure(outcome: unknown, thrown: boolean): boolean {
  if (thrown) return !isAbort(outcome);
  const status = readStatus(outcome);
  return status !== null && (status >= 500 || status === 429);
}

/** The application has aborted the call itself, by the names that `fetch`, Node and axios use. */
export const isAbort = (thrown: unknown): boolean =>
  thrown instanceof Error &&
  (/^(AbortError|CanceledError)$/.test(thrown.name) ||
    /^(ABORT_ERR|ERR_CANCELED)$/.test(String((thrown as { code?: unknown }).code)));

/** The fields of a response that clients return; axios and got throw errors with such a `response`. */
interface HttpOutcome {
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly headers?: { get?(name: string): unknown; readonly 'retry-after'?: unknown } | null;
  readonly response?: HttpOutcome | null;
}

/** The HTTP status of a result; null where it has none. */
export function readStatus(outcome: unknown): number | null {
  const { status, statusCode } = (outcome ?? {}) as HttpOutcome;
  const given = status ?? statusCode;
  return typeof given === 'number' ? given : null;
}

/** Returns the wait of `Retry-After`, milliseconds; null without one. https://www.rfc-editor.org/rfc/rfc9110#field.retry-after */
export function readRetryAfter(outcome: unknown, epochMs: number): number | null {
  const { headers: own, response } = (outcome ?? {}) as HttpOutcome;
  const headers = own ?? response?.headers;
  if (typeof headers !== 'object' || headers === null) return null;
  const given = typeof headers.get === 'function' ? headers.get('retry-after') : headers['retry-after'];
  if (typeof given !== 'string' && typeof given !== 'number') return null;
  const seconds = Number(given);
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(String(given)) - epochMs;
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}
