import type { Extension, PerfExtension } from '../http/extension.js';
import { recordingFeature } from '../recording/recording.feature.js';
import { recordOption, type RecordOptions } from '../recording/recording.options.js';

export type { RecordOptions } from '../recording/recording.options.js';

/**
 * Lets `perf.recording` write live traffic to a file, sampled by whole sessions and without secrets, for `nestjs-perf-load`.
 * Nothing is recorded before `perf.recording.start()`.
 * @example PerfModule.forRoot({ extensions: [record({ directory: '/var/tmp/perf' })] })
 * @throws PERF_ERR_OPTION
 */
export function record(options: RecordOptions): PerfExtension {
  const resolved = recordOption.read(options, 'record');
  const extension: Extension = {
    name: 'record',
    observesRequests: true,
    create: (host) => recordingFeature(resolved, host),
  };
  return extension;
}
