import type { RawResponse } from '../core/guarded.js';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number | readonly string[]>>;
  readonly body: string | Uint8Array;
}

/** Answers a raw route; gets the framework's request. */
export type RawAnswer = (request: unknown) => Promise<RawResponse<string | Uint8Array>>;

/** A raw route's answer, as a platform sends it. No cache may keep it: `authorize` decides each time. */
export const createAnswer = ({ status, type, body, headers }: Awaited<ReturnType<RawAnswer>>): Answer => ({
  status,
  headers: { 'content-type': type, 'cache-control': 'no-store', ...headers },
  body,
});
