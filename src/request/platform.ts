import type { ServerResponse } from 'node:http';
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

/** Adds the headers of a raw route's answer. No cache may keep it: `authorize` decides each time. */
export const createAnswer = ({ status, type, body, headers }: Awaited<ReturnType<RawAnswer>>): Answer => ({
  status,
  headers: { 'content-type': type, 'cache-control': 'no-store', ...headers },
  body,
});

/** The server framework behind Nest's adapter. */
export interface Platform {
  /** `other`: an adapter that this library knows by Nest's abstract class alone. */
  readonly kind: 'fastify' | 'express' | 'other';
  readonly application: unknown;
  /** Called before Nest registers routes: enters each request's context in the framework, and notes the framework's request. */
  observe(): void;
  /** Nest has registered its routes: those that follow are not Nest's. */
  routesRegistered?(): void;
  /** The route that the framework has matched; null for none. May throw: it reads fields that an application can have changed. */
  findRoute(state: RequestState): Route | null;
  /** Registers a GET route beside Nest: no guards, no Swagger, no record. */
  rawRoute(path: string, answer: RawAnswer): void;
  /** Answers through the framework's response, or Node's (`raw`). */
  answer(response: unknown, answer: Answer, raw: ServerResponse): void;
}
