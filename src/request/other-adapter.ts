import { IncomingMessage, type ServerResponse } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { requestContext, storedRequest } from './request-state.js';
import { ownRoute } from './routes.js';
import { createAnswer, type Answer, type RawAnswer } from './answer.js';
import { stateOf, type RequestTracker } from './tracker.js';
import type { Platform } from './platform.js';

/** An adapter that is known by Nest's abstract class alone: Nest's NodeAdapter, or one of the application's own. */
export class OtherPlatform implements Platform {
  readonly kind = 'other';
  readonly listener = null;

  constructor(readonly application: AbstractHttpAdapter) {}

  observe(requests: RequestTracker): void {
    this.application.use((request: unknown, response: unknown, next: () => void) => {
      const known = storedRequest();
      // A server of the application's own emits its requests to nobody else.
      const isNew = known === undefined && request instanceof IncomingMessage;
      const state = isNew ? requests.start(request, response as ServerResponse) : (known ?? stateOf(request));
      if (state === null) return next();
      state.frameworkRequest = request;
      return requests.enter(state, next);
    });
  }

  findRoute(): null {
    return null;
  }

  rawRoute(path: string, _owner: string, answer: RawAnswer): void {
    const route = ownRoute(path);
    const handle = async (request: unknown, response: unknown, next?: (error: unknown) => void): Promise<void> => {
      const state = requestContext.getStore() ?? stateOf(request);
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

  /** Past the framework, which may know nothing of binary bodies. */
  answer(response: unknown, { status, headers, body }: Answer): void {
    const raw = stateOf(response)?.response ?? (response as ServerResponse);
    if (raw.headersSent) return;
    raw.statusCode = status;
    for (const [name, value] of Object.entries(headers)) raw.setHeader(name, value);
    raw.end(body);
  }
}
