import { Mappings, SourceMaps } from './source-maps.js';
import { watchdogThread } from './watchdog.thread.js';

/**
 * The program of the watchdog's thread, as text: it needs no file beside the application's, so it survives bundling. In the
 * package scripts/build.mjs has made a literal of it, which holds no helpers of bundlers or counters of coverage tools.
 */
export const watchdogSource = (): string =>
  `(${watchdogThread.toString()})(${SourceMaps.toString()}, ${Mappings.toString()})`;
