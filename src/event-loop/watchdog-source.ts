import { isUserFrame } from './frame.js';
import { Mappings, SourceMaps } from './source-maps.js';
import { watchdogThread } from './watchdog.thread.js';

/** The program of the watchdog's thread, as text: it survives bundling. scripts/build.mjs makes a literal of it. */
export const watchdogSource = (): string =>
  `(${watchdogThread.toString()})(${[SourceMaps, Mappings, isUserFrame].join(', ')})`;
