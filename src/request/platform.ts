import type { RawResponse } from '../core/guarded.js';
import type { RequestState } from './request-state.js';
import type { Route } from './routes.js';

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

/** One server framework, behind an interface. Only its implementations know which one it is. */
export interface Platform {
  /** `other`: an adapter that this library knows by Nest's abstract class alone. */
  readonly kind: 'fastify' | 'express' | 'other';
  readonly application: unknown;
  /** Starts every request that does not come with the server's `request` event. Before routes are registered. */
  observe(): void;
  /** Nest has registered its routes: those that follow are not Nest's. */
  routesRegistered?(): void;
  /** The route that the framework has matched; null for none. May throw: it reads fields that an application can have changed. */
  findRoute(state: RequestState): Route | null;
  /** Registers a GET route beside Nest: no guards, no Swagger, no record. */
  rawRoute(path: string, answer: RawAnswer): void;
  answer(response: unknown, answer: Answer): void;
}
