import { object, optional, string, value } from './core/option.js';
import type { Authorize } from './core/guarded.js';

/** `GET /perf/snapshot`: the application's snapshot as JSON, for who may read it. */
export interface SnapshotEndpointOptions {
  /**
   * No guard, global prefix or API document applies to it.
   * @default '/perf/snapshot'
   */
  path?: string;
  /** Who may read it; gets the request of Fastify or Express. Others are answered with 403. */
  authorize: Authorize;
}

/** The option; null when it is not given: then there is no endpoint. */
export const snapshotEndpointOption = optional(
  object({
    path: string({
      default: '/perf/snapshot',
      what: 'a path that begins with `/`',
      test: (path) => path.startsWith('/'),
    }),
    authorize: value<Authorize>(
      'a function of the request that answers with a boolean',
      (given) => typeof given === 'function',
    ),
  }),
);
