import { resolve } from 'node:path';
import type { PerfExtension } from '../request/extension.js';
import { recordingExtension } from '../recording/recording.feature.js';
import { recordOption, type RecordOptions, type ResolvedRecordOptions } from '../recording/recording.options.js';

export type { RecordOptions } from '../recording/recording.options.js';

/**
 * Lets `perf.recording` write live traffic to a file, sampled by whole sessions, without bodies and secrets, for `nestjs-perf-load`.
 * Nothing is recorded before `perf.recording.start()`.
 * @example PerfModule.forRoot({ extensions: [record({ directory: '/var/tmp/perf' })] })
 * @throws PERF_ERR_OPTION
 */
export const record = (options: RecordOptions): PerfExtension => recordingExtension(readOptions(options));

function readOptions(options: RecordOptions): ResolvedRecordOptions {
  const resolved = recordOption.read(options, 'record');
  return { ...resolved, directory: resolve(resolved.directory) };
}
