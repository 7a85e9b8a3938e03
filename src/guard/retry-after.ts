import type { AbstractHttpAdapter } from '@nestjs/core';
import { watchReplies } from '../request/replies.js';
import { retryAfterOfBody } from './guard.error.js';

/** What HTTP clients throw and return: `fetch` has `Headers`, others plain objects, axios and got a response in the error. */
interface HttpOutcome {
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly headers?: unknown;
  readonly response?: unknown;
}

/** What a call has returned or thrown, and the response in it: what the first says of itself counts. */
export function* responsesOf(outcome: unknown): Generator<HttpOutcome> {
  if (typeof outcome !== 'object' || outcome === null) return;
  yield outcome;
  const { response } = outcome as HttpOutcome;
  if (typeof response === 'object' && response !== null) yield response;
}

/** The HTTP status of what a call has returned; null where there is none. */
export function statusOf(outcome: unknown): number | null {
  for (const { status, statusCode } of responsesOf(outcome)) {
    const given = status ?? statusCode;
    if (typeof given === 'number') return given;
  }
  return null;
}

/** The wait that the upstream asks for, milliseconds; null for none. https://www.rfc-editor.org/rfc/rfc9110#field.retry-after */
export function retryAfterMs(outcome: unknown, epochMs: number): number | null {
  let given: unknown = null;
  for (const { headers } of responsesOf(outcome)) given ??= retryAfterOf(headers);
  if (typeof given !== 'string' && typeof given !== 'number') return null;
  const seconds = Number(given);
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(String(given)) - epochMs;
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

function retryAfterOf(given: unknown): unknown {
  const headers = given as { get?(name: string): unknown; readonly 'retry-after'?: unknown } | null | undefined;
  if (typeof headers !== 'object' || headers === null) return null;
  return typeof headers.get === 'function' ? headers.get('retry-after') : headers['retry-after'];
}

/**
 * Has an adapter answer with `Retry-After` where it sends the body of a `GuardError`, whichever filter had it do so.
 * Returns what gives the adapter back.
 */
export function answerRetryAfter(adapter: AbstractHttpAdapter): () => void {
  return watchReplies(adapter, (response, body, status) => {
    const known = status === 503 ? retryAfterOfBody.get(body as object) : undefined;
    if (known !== undefined) adapter.setHeader(response, 'Retry-After', String(known));
  });
}
