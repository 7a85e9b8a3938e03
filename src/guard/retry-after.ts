import type { AbstractHttpAdapter } from '@nestjs/core';
import type { GuardError } from './guard.error.js';

/** What HTTP clients throw and return: `fetch` has `Headers`, others plain objects, axios and got a response in the error. */
interface HttpOutcome {
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly headers?: unknown;
  readonly response?: unknown;
}

/** The response in what a call has returned or thrown. */
function responseOf(outcome: unknown): HttpOutcome | null {
  if (typeof outcome !== 'object' || outcome === null) return null;
  const { response } = outcome as HttpOutcome;
  return typeof response === 'object' && response !== null ? response : outcome;
}

/** The HTTP status of what a call has returned or thrown; null where there is none. */
export function statusOf(outcome: unknown): number | null {
  const response = responseOf(outcome);
  const status = response?.status ?? response?.statusCode;
  return typeof status === 'number' ? status : null;
}

/** The wait that the upstream asks for, milliseconds; null for none. https://www.rfc-editor.org/rfc/rfc9110#field.retry-after */
export function retryAfterMs(outcome: unknown, epochMs: number): number | null {
  const headers = responseOf(outcome)?.headers as { get?: unknown; [name: string]: unknown } | null | undefined;
  if (typeof headers !== 'object' || headers === null) return null;
  const given: unknown =
    typeof headers.get === 'function'
      ? (headers as unknown as Headers).get('retry-after')
      : (headers['retry-after'] ?? headers['Retry-After']);
  if (typeof given !== 'string' && typeof given !== 'number') return null;
  const seconds = Number(given);
  const ms = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(String(given)) - epochMs;
  return Number.isFinite(ms) ? Math.max(0, ms) : null;
}

/**
 * Has an adapter answer with `Retry-After` where it sends the body of a {@link GuardError}, whichever filter had it do so.
 * Returns what gives the adapter back.
 */
export function answerRetryAfter(adapter: AbstractHttpAdapter, seconds: WeakMap<object, number>): () => void {
  const own = Object.getOwnPropertyDescriptor(adapter, 'reply');
  const reply = Reflect.get(adapter, 'reply');
  const replies = function (this: AbstractHttpAdapter, response: unknown, body: unknown, status?: number): unknown {
    if (status === 503 && typeof body === 'object' && body !== null) {
      const known = seconds.get(body);
      if (known !== undefined) this.setHeader(response, 'Retry-After', String(known));
    }
    return reply.call(this, response, body, status);
  };
  adapter.reply = replies;
  return () => {
    if (Reflect.get(adapter, 'reply') !== replies) return;
    if (own === undefined) Reflect.deleteProperty(adapter, 'reply');
    else Object.defineProperty(adapter, 'reply', own);
  };
}

/** Remembers when the answer that an error becomes asks its client to come back. */
export function rememberRetryAfter(seconds: WeakMap<object, number>, error: GuardError): GuardError {
  if (error.retryAfterSeconds !== null) seconds.set(error.getResponse() as object, error.retryAfterSeconds);
  return error;
}
