import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { offloadExtension } from '../offload/offload.feature.js';
import type { OffloadOptions } from '../offload/offload.options.js';
import type { PerfExtension } from '../request/extension.js';
import { piscinaPools } from './offload/piscina-pool.js';

export { Offload } from '../offload/offload.decorator.js';
export type { OffloadMethodOptions, OffloadOptions, OffloadRunOptions } from '../offload/offload.options.js';
export { Offloader } from '../offload/offload.feature.js';
export type { Durations, OffloadStats } from '../core/snapshot.js';

/**
 * Lets `@Offload()` methods and `Offloader.run()` run in worker threads: `PerfModule.forRoot({ extensions: [offload({ module })] })`.
 * @throws PERF_ERR_OPTION; at boot PERF_ERR_MISSING_PEER without the package `piscina`, PERF_ERR_DECORATOR
 */
export const offload = (options: OffloadOptions): PerfExtension =>
  offloadExtension(options, piscinaPools(findProgram()));

/** The file that workers run. Null in the sources and in a bundle of ES modules, which have no folder of their own. */
const findProgram = (): URL | null =>
  typeof __dirname === 'undefined' ? null : pathToFileURL(join(__dirname, 'offload/worker.thread.cjs'));
