import type { AbstractHttpAdapter } from '@nestjs/core';
import type { Reporter } from './core/reporter.js';

/** `app.init()` or `app.listen()` comes within this of `NestFactory.create()`, milliseconds. */
const PATIENCE_MS = 5_000;

/** Warns about an application that works without ever being initialised. Returns what cancels the check. */
export function warnUnlessStarted(adapter: AbstractHttpAdapter | null | undefined, logger: Reporter): () => void {
  const timer = setTimeout(() => {
    // Nest gives an application its server once all providers are made: without one, the boot has failed, or it is no server.
    if (adapter?.getHttpServer() !== undefined) logger.warn(NOT_STARTED);
  }, PATIENCE_MS).unref();
  return () => clearTimeout(timer);
}

const NOT_STARTED =
  `This application is not initialised ${PATIENCE_MS / 1_000} s after it was made. Until it is, durable and decorated work does not run, and nothing is ` +
  'measured, cached, offloaded or exported. Where nothing calls `app.listen()`, call app.init() before `app.startAllMicroservices()`.';
