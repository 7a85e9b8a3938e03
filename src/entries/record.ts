import { resolve } from 'node:path';
import { recordingExtension } from '../recording/recording.feature.js';
import { recordOption, type RecordOptions } from '../recording/recording.options.js';
import type { PerfExtension } from '../request/extension.js';

export type { RecordOptions } from '../recording/recording.options.js';

/**
 * Lets `perf.recording` write live traffic to a file, sampled by whole sessions, without bodies and secrets, for `nestjs-perf-load`.
 * Nothing is recorded before `perf.recording.start()`.
 * @example PerfModule.forRoot({ extensions: [record({ directory: '/var/tmp/perf' })] })
 * @throws PERF_ERR_OPTION
 */
export function record(options: RecordOptions): PerfExtension {
  const resolved = recordOption.read(options, 'record');
  return recordingExtension({ ...resolved, directory: resolve(resolved.directory) });
}
