import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The file that workers run. Null in the sources and in a bundle of ES modules, which have no folder of their own. */
export const program = (): URL | null =>
  typeof __dirname === 'undefined' ? null : pathToFileURL(join(__dirname, 'offload/worker.thread.cjs'));
