import type { Routes } from './routes.js';
import type { RawAnswer } from './answer.js';
import type { RequestTracker, RequestPlatform } from './tracker.js';

/** One server framework, behind an interface. Only its implementations know which one it is. */
export interface Platform extends RequestPlatform {
  /** `other`: an adapter that this library knows by Nest's abstract class alone. */
  readonly kind: 'fastify' | 'express' | 'other';
  readonly application: unknown;
  /** The listener that the framework has on a server that it makes; null where that is unknown. */
  readonly listener: unknown;
  /** Passes every request to `requests` that does not come with the server's `request` event. Before routes are registered. */
  observe(requests: RequestTracker, routes: Routes): void;
  /** Nest has registered its routes: those that follow are not Nest's. */
  routesRegistered?(): void;
  /** Registers a GET route beside Nest: no guards, no Swagger, no record. */
  rawRoute(path: string, owner: string, answer: RawAnswer): void;
}
