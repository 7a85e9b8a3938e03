import { IncomingMessage, type ServerResponse } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { createAnswer, type Answer, type Platform, type RawAnswer } from './platform.js';
import { requestContext, storedRequest, type RequestState } from './request-state.js';
import { ownRoute, type Route } from './routes.js';
import { findState, type RequestTracker } from './tracker.js';

/** Every adapter but Fastify's, through Nest's abstract class alone: Express, Nest's NodeAdapter, one that the application brings. */
export class OtherPlatform implements Platform {
  constructor(
    readonly application: AbstractHttpAdapter,
    private readonly requests: RequestTracker,
    readonly kind: 'express' | 'other' = 'other',
    readonly findRoute: (state: RequestState) => Route | null = () => null,
  ) {}

  /** The middleware also starts requests without the server's `request` event: of servers that the application makes. */
  observe(): void {
    const { requests } = this;
    this.application.use((request: unknown, response: unknown, next: () => void) => {
      const isNodes = request instanceof IncomingMessage;
      // An adapter may pass a request object of its own: the store has its state.
      const state = isNodes
        ? requests.start(request, response as ServerResponse)
        : (storedRequest() ?? findState(request));
      if (state === null) return next();
      state.frameworkRequest = request;
      return requests.enter(state, next);
    });
  }

  rawRoute(path: string, answer: RawAnswer): void {
    const route = ownRoute(path);
    const handle = async (request: unknown, response: unknown, next?: (error: unknown) => void): Promise<void> => {
      const state = findState(request) ?? requestContext.getStore() ?? null;
      if (state !== null) state.route = route;
      try {
        this.answer(state?.response ?? response, createAnswer(await answer(request)));
      } catch (error) {
        if (next === undefined) throw error;
        next(error);
      }
    };
    this.application.get(path, handle as never);
  }

  /** Writes to Node's response: a framework may not know binary bodies. Middleware with a timeout may have answered meanwhile. */
  answer(response: unknown, { status, headers, body }: Answer): void {
    const raw = findState(response)?.response ?? (response as ServerResponse);
    if (raw.headersSent) return;
    raw.statusCode = status;
    for (const [name, value] of Object.entries(headers)) raw.setHeader(name, value);
    raw.end(body);
  }
}
