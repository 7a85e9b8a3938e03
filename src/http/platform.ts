import type { Routes } from '../core/route.js';
import type { RawAnswer } from './answer.js';
import type { RequestLifecycle, RequestPlatform } from './lifecycle.js';

/** What a server framework gives. The only place that knows which one it is. */
export interface Platform extends RequestPlatform {
  readonly kind: 'fastify' | 'express';
  readonly application: unknown;
  /** Takes every request to `requests`, whichever server it came through, as early as can be. Before routes are registered. */
  observe(requests: RequestLifecycle, routes: Routes): void;
  /**
   * Registers a GET route beside Nest: no guards, no Swagger, no record. `owner` asks for it, as an error says it.
   * @throws PERF_ERR_OPTION where the path is taken
   */
  rawRoute(path: string, owner: string, answer: RawAnswer): void;
}
