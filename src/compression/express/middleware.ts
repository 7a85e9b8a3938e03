import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestEntry } from '../../http/platform.js';
import type { CompressionEngine } from '../engine.js';
import { RouteCompression } from '../route-compression.js';
import type { Sending } from './held-response.js';
import { ResponseHolder } from './response-holder.js';

/** The part of Express 5 that is used. */
export interface ExpressApplication {
  /** The prototype that the application gives to each of its responses. */
  readonly response: object;
  use(middleware: (request: IncomingMessage, response: ServerResponse, next: () => void) => void): unknown;
}

/**
 * Installs compression on an Express application, before its routes exist. Called from `configure()`, the middleware stands behind
 * those of main.ts: of two compressors the inner one encodes, and the outer one sees that it is done.
 */
export function compressOnExpress(
  express: ExpressApplication,
  engine: CompressionEngine,
  requests: RequestEntry,
): void {
  const holder = new ResponseHolder(engine, new RouteCompression(false, null), requests, express.response as Sending);
  express.use((request, response, next) => {
    holder.hold(request, response);
    next();
  });
}
