import type { OffloadStats } from '../core/snapshot.js';
import type { OffloadRunOptions } from './offload.options.js';

/** Runs files in worker threads, and counts the gain. Injection token and type. */
export abstract class Offloader {
  /**
   * Calls the default export of `file` with `input`, in a worker, without any application of Nest's.
   * @throws PERF_ERR_OFFLOAD_FULL, PERF_ERR_OFFLOAD_TIMEOUT, PERF_ERR_SERIALIZE, PERF_ERR_OFFLOAD, PERF_ERR_OPTION, and what the file throws
   */
  abstract run<T>(file: URL | string, input: unknown, options?: OffloadRunOptions): Promise<T>;
  /** Returns the time that the loop was spared, and the cost of cloning. */
  abstract stats(): OffloadStats;
}
