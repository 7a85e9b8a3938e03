import { IncomingMessage, type ServerResponse } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { requestContext, storedRequest, type RequestState } from './request-state.js';
import { ownRoute, type Route, type Routes } from './routes.js';
import { createAnswer, type Answer, type RawAnswer } from './answer.js';
import { stateOf, type RequestTracker } from './tracker.js';
import type { Platform } from './platform.js';

/** An adapter that is known by Nest's abstract class alone: Nest's NodeAdapter, or one of the application's own. */
export class OtherPlatform implements Platform {
  readonly kind: 'express' | 'other' = 'other';

  constructor(readonly application: AbstractHttpAdapter) {}

  get listener(): unknown {
    return null;
  }

  /** Servers of the application's own emit no `request` to us. */
  observe(requests: RequestTracker): void {
    this.application.use((request: unknown, response: unknown, next: () => void) => {
      const isNodes = request instanceof IncomingMessage;
      // Another adapter may have requests of its own, found in the context store.
      const state = isNodes
        ? requests.reach(request, response as ServerResponse)
        : (storedRequest() ?? stateOf(request));
      if (state === null) return next();
      state.frameworkRequest = request;
      return requests.enter(state, next);
    });
  }

  findRoute(_state: RequestState, _routes: Routes): Route | null {
    return null;
  }

  rawRoute(path: string, _owner: string, answer: RawAnswer): void {
    const route = ownRoute(path);
    const handle = async (request: unknown, response: unknown, next?: (error: unknown) => void): Promise<void> => {
      const state = stateOf(request) ?? requestContext.getStore() ?? null;
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

  /** Past the framework, which may know nothing of binary bodies. Middleware with a timeout may have answered meanwhile. */
  answer(response: unknown, { status, headers, body }: Answer): void {
    const raw = stateOf(response)?.response ?? (response as ServerResponse);
    if (raw.headersSent) return;
    raw.statusCode = status;
    for (const [name, value] of Object.entries(headers)) raw.setHeader(name, value);
    raw.end(body);
  }
}
