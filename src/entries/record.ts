import type { PerfExtension } from '../request/extension.js';
import { recordingExtension } from '../recording/recording.feature.js';
import { recordOption, type RecordOptions } from '../recording/recording.options.js';

export type { RecordOptions } from '../recording/recording.options.js';

/**
 * Lets `perf.recording` write live traffic to a file, sampled by whole sessions and without secrets, for `nestjs-perf-load`.
 * Nothing is recorded before `perf.recording.start()`.
 * @example PerfModule.forRoot({ extensions: [record({ directory: '/var/tmp/perf' })] })
 * @throws PERF_ERR_OPTION
 */
export const record = (options: RecordOptions): PerfExtension =>
  recordingExtension(recordOption.read(options, 'record'));
