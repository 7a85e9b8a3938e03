import type { IncomingHttpHeaders } from 'node:http';

/** The framework's request (Fastify's or Express'), as callbacks get it: what both have, and whatever the application adds. */
export interface PerfRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  // oxlint-disable-next-line typescript/no-explicit-any -- so that `request.user.id` compiles in strict mode
  [property: string]: any;
}
