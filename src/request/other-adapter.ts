import { IncomingMessage, type ServerResponse } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { createAnswer, type Answer, type Platform, type RawAnswer } from './platform.js';
import { confirmRequest, storedRequest, type RequestState } from './request-state.js';
import type { Route, Routes } from './routes.js';
import type { RequestTracker } from './tracker.js';

/** Every adapter but Fastify's, through Nest's abstract class alone: Express, Nest's NodeAdapter, one that the application brings. */
export class OtherPlatform implements Platform {
  constructor(
    readonly application: AbstractHttpAdapter,
    private readonly requests: RequestTracker,
    private readonly routes: Routes,
    readonly kind: 'express' | 'other' = 'other',
    readonly findRoute: (state: RequestState) => Route | null = () => null,
  ) {}

  /** The middleware also starts requests without the server's `request` event: of servers that the application makes. */
  observe(): void {
    const { requests } = this;
    this.application.use((request: unknown, response: unknown, next: () => void) => {
      // An adapter may pass a request object of its own: the store has its state.
      const state =
        request instanceof IncomingMessage ? requests.start(request, response as ServerResponse) : storedRequest();
      if (state === undefined) return next();
      state.frameworkRequest = request;
      return requests.enter(state, next);
    });
  }

  rawRoute(path: string, answer: RawAnswer): void {
    const route = this.routes.createOwn(path);
    const handle = async (request: unknown, response: unknown, next?: (error: unknown) => void): Promise<void> => {
      const state = confirmRequest(request);
      if (state !== null) state.route = route;
      try {
        this.answer(response, createAnswer(await answer(request)), state?.response ?? (response as ServerResponse));
      } catch (error) {
        if (next === undefined) throw error;
        next(error);
      }
    };
    this.application.get(path, handle as never);
  }

  /** Writes to Node's response: a framework may not know binary bodies. Middleware with a timeout may have answered meanwhile. */
  answer(_response: unknown, { status, headers, body }: Answer, raw: ServerResponse): void {
    if (raw.headersSent) return;
    raw.statusCode = status;
    for (const [name, value] of Object.entries(headers)) raw.setHeader(name, value);
    raw.end(body);
  }
}
