import type { RawResponse } from '../core/guarded.js';
import type { RequestState } from '../core/request-state.js';
import type { Route, Routes } from '../core/route.js';
import type { RequestLifecycle } from './lifecycle.js';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number | readonly string[]>>;
  readonly body: string | Uint8Array;
}

/** Answers a raw route; gets the framework's request. */
export type RawAnswer = (request: unknown) => Promise<RawResponse<string | Uint8Array>>;

/** A raw route's answer, as {@link Platform.answer} sends it. Who may read it is asked each time: no cache may keep it. */
export const answerOf = ({ status, type, body, headers }: Awaited<ReturnType<RawAnswer>>): Answer => ({
  status,
  headers: { 'content-type': type, 'cache-control': 'no-store', ...headers },
  body,
});

/** What a server framework gives. The only place that knows which one it is. */
export interface Platform {
  readonly kind: 'fastify' | 'express';
  readonly application: unknown;
  /** Takes every request to `requests`, whichever server it came through, as early as can be. Before routes are registered. */
  observe(requests: RequestLifecycle, routes: Routes): void;
  /** The route that the framework has matched; null for none. May throw: it reads what an application can have changed. */
  findRoute(state: RequestState, routes: Routes): Route | null;
  /**
   * Registers a GET route beside Nest: no guards, no Swagger, no record. `owner` asks for it, as an error says it.
   * @throws PERF_ERR_OPTION where the path is taken
   */
  rawRoute(path: string, owner: string, answer: RawAnswer): void;
  answer(response: unknown, answer: Answer): void;
}
