import { authorizeOption, pathOption, type Authorize } from './core/guarded.js';
import { object, optional } from './core/option.js';

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
  object({ path: pathOption('/perf/snapshot'), authorize: authorizeOption }),
);
