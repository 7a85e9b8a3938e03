import type { IncomingMessage, ServerResponse } from 'node:http';
import type { CompressionEngine } from '../engine.js';
import { hold } from './held-response.js';
import { RouteCompression } from '../route-compression.js';

/** The part of Express 5 that is used. */
export interface ExpressApplication {
  use(middleware: (request: IncomingMessage, response: ServerResponse, next: () => void) => void): unknown;
}

/**
 * Installs compression on an Express application, before its routes exist. Called from `configure()`, the middleware stands behind
 * those of main.ts: of two compressors the inner one encodes, and the outer one sees that it is done.
 */
export function compressOnExpress(express: ExpressApplication, engine: CompressionEngine): void {
  const unrouted = new RouteCompression(false, null);
  express.use((request, response, next) => {
    hold(request, response, engine, unrouted);
    next();
  });
}
