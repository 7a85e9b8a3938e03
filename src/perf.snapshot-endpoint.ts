import { authorizeOption, guarded, pathOption } from './core/guarded.js';
import { object, optional, type Resolved } from './core/option.js';
import type { PerfRequest } from './core/perf-request.js';
import type { OncePerCause } from './core/reporter.js';
import type { PerfSnapshot } from './core/snapshot.js';
import type { Platform } from './request/platform.js';

/** `GET /perf/snapshot`: the application's snapshot as JSON, for who may read it. */
export interface SnapshotEndpointOptions {
  /**
   * No guard, global prefix or API document applies to it.
   * @default '/perf/snapshot'
   */
  path?: string;
  /** Decides whether a request may read it; others are answered with 403. */
  authorize(this: void, request: PerfRequest): boolean | Promise<boolean>;
}

/** The option; null when it is not given: then there is no endpoint. */
export const snapshotEndpointOption = optional(
  object({ path: pathOption('/perf/snapshot'), authorize: authorizeOption }),
);

/** Registers the endpoint. What goes wrong is answered with 500 and reported. */
export function installSnapshotEndpoint(
  platform: Platform,
  { path, authorize }: NonNullable<Resolved<typeof snapshotEndpointOption>>,
  snapshot: () => PerfSnapshot,
  report: OncePerCause,
): void {
  const answer = async () => ({
    status: 200,
    type: 'application/json; charset=utf-8',
    body: JSON.stringify(snapshot()),
  });
  const failed = (reason: string): void => {
    const cause = `the snapshot endpoint failed: ${reason}`;
    report.report(cause, `${cause}. Its caller was answered with 500.`);
  };
  platform.rawRoute(path, guarded(authorize, answer, failed));
}
