import { attach } from '../core/attachment.js';
import type { RequestState } from '../core/request-state.js';
import { AdmissionGate } from './cache/admission-gate.js';
import { CompressionCounters } from './compression-counters.js';
import type { KeptResponse, SharedFlight } from './shared-response/shared-flight.js';
import type { SharedRoute } from './shared-response/shared-route.js';

/** What compression keeps for a route. */
export class RouteCompression {
  readonly gate = new AdmissionGate();
  readonly counters = new CompressionCounters();

  constructor(
    /** `@NoCompression()` stands on the handler or its class. */
    readonly off: boolean,
    /** What `@SharedResponse()` keeps; null without it. */
    readonly shared: SharedRoute | null,
  ) {}
}

export const ROUTE_COMPRESSION = attach<RouteCompression>('route');
/** The shared answer that a request makes or gets; null for an answer of its own. */
export const SHARED_ANSWER = attach<SharedFlight | KeptResponse>('request');

/** What compression keeps for a request's route; null where it does not know it. */
export function compressionOf(state: RequestState | null): RouteCompression | null {
  const route = state?.route ?? null;
  return route === null ? null : ROUTE_COMPRESSION.get(route);
}
