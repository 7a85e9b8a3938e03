import type { Route } from '../core/route.js';
import { AdmissionGate } from './cache/admission-gate.js';
import { CompressionCounters } from './compression-counters.js';
import { RepeatedBody } from './cache/repeated-body.js';
import type { SharedRoute } from './shared-response/shared-route.js';

/** What compression keeps for a route. */
export class RouteCompression {
  readonly gate = new AdmissionGate();
  readonly repeated = new RepeatedBody();
  readonly counters = new CompressionCounters();

  constructor(
    /** `@NoCompression()` stands on the handler or its class. */
    readonly off: boolean,
    /** What `@SharedResponse()` keeps; null without it. */
    readonly shared: SharedRoute | null,
  ) {}
}

/** What compression keeps for this route; null for a route that it does not know. */
export function compressionOf(route: Route | null | undefined): RouteCompression | null {
  return (route?.compression ?? null) as RouteCompression | null;
}
