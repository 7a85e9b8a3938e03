import { describeReason } from '../core/reason.js';

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

/** The fields of a response that clients return or throw; axios and got have the response in the error. */
interface HttpOutcome {
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly headers?: { get?(name: string): unknown; readonly 'retry-after'?: unknown } | null;
  readonly response?: unknown;
}

function findResponses(outcome: unknown): HttpOutcome[] {
  if (typeof outcome !== 'object' || outcome === null) return [];
  const { response } = outcome as HttpOutcome;
  return typeof response === 'object' && response !== null ? [outcome, response] : [outcome];
}

/** The HTTP status of a result; null where it has none. */
export function readStatus(outcome: unknown): number | null {
  for (const { status, statusCode } of findResponses(outcome)) {
    const given = status ?? statusCode;
    if (typeof given === 'number') return given;
  }
  return null;
}

/** Returns the wait of `Retry-After`, milliseconds; null without one. https://www.rfc-editor.org/rfc/rfc9110#field.retry-after */
export function readRetryAfter(outcome: unknown, epochMs: number): number | null {
  for (const { headers } of findResponses(outcome)) {
    if (typeof headers !== 'object' || headers === null) continue;
    const given = typeof headers.get === 'function' ? headers.get('retry-after') : headers['retry-after'];
    if (typeof given !== 'string' && typeof given !== 'number') continue;
    const seconds = Number(given);
    const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(String(given)) - epochMs;
    return Number.isFinite(ms) ? Math.max(0, ms) : null;
  }
  return null;
}
