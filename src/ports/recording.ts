import { PerfError } from '../core/perf.error.js';
import type { RequestState } from '../request/request-state.js';

/** The result of a recording. */
export interface RecordedTraffic {
  /** Path of the file: gzip, one JSON object a line, readable by its owner only. */
  readonly file: string;
  /** In the file. */
  readonly requests: number;
}

/** Records the application's traffic to a file, for a load test or a comparison of two releases. */
export interface Recording {
  /**
   * Begins. It ends by itself after `forMs` milliseconds, when `maxBytes` are written, or when the application closes, with a line in the log.
   * @throws PERF_ERR_OPTION; PERF_ERR_RECORDING while another one runs, or when the directory cannot be written to;
   * PERF_ERR_OFF with `enabled: false`; PERF_ERR_EXTENSION without `extensions: [record({ directory })]`
   */
  start(options: { forMs: number }): void;
  /**
   * Ends it, and resolves with its result, also where it has ended by itself.
   * @throws PERF_ERR_RECORDING when none was started, or its file could not be written; PERF_ERR_EXTENSION
   */
  stop(): Promise<RecordedTraffic>;
}

/** The recordings of an application; provided by the extension. */
export abstract class Recordings implements Recording {
  abstract start(options: { forMs: number }): void;
  abstract stop(): Promise<RecordedTraffic>;
  /** A request has ended. */
  abstract ended(state: RequestState): void;
}

const missing = (): PerfError =>
  new PerfError(
    'PERF_ERR_EXTENSION',
    "`perf.recording` does nothing without its extension. Add it: PerfModule.forRoot({ extensions: [record({ directory: '/var/tmp/perf' })] }), " +
      "with `record` of 'nestjs-perf/record'.",
  );

/** In the place of the extension that is not there. */
export const NO_RECORDING: Recording = {
  start() {
    throw missing();
  },
  stop: () => Promise.reject(missing()),
};
