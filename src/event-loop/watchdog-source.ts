import { Mappings } from './mappings.js';
import { SourceMaps } from './source-maps.js';
import { watchdogThread } from './watchdog.worker.js';

/**
 * The program of the watchdog's thread, as text: it needs no file beside the application's, so it survives bundling.
 *
 * In the package this function returns one string literal, which scripts/build.mjs puts here. Text that is taken from a
 * function at run time is what tools have made of it: helpers of a bundler (`__name`, `__publicField`) or counters of a
 * coverage tool stand in it, and are not defined in the thread.
 */
export const watchdogSource = (): string =>
  `(${watchdogThread.toString()})(${SourceMaps.toString()}, ${Mappings.toString()})`;
