/** Stable codes of {@link PerfError}. Adding one is a minor change, changing or removing one a major. */
export type PerfErrorCode =
  | 'PERF_ERR_OPTION'
  | 'PERF_ERR_REGISTERED_TWICE'
  | 'PERF_ERR_OFF'
  | 'PERF_ERR_CONTEXT_OFF'
  | 'PERF_ERR_DEFER_FULL'
  | 'PERF_ERR_DEFER_WORK'
  | 'PERF_ERR_DECORATOR'
  | 'PERF_ERR_EXTENSION'
  | 'PERF_ERR_OFFLOAD'
  | 'PERF_ERR_OFFLOAD_FULL'
  | 'PERF_ERR_OFFLOAD_TIMEOUT'
  | 'PERF_ERR_SERIALIZE'
  | 'PERF_ERR_STORE'
  | 'PERF_ERR_UNITS'
  | 'PERF_ERR_WATCH'
  | 'PERF_ERR_MISSING_PEER';

/**
 * Every error that this library throws. The message says where and what was expected, what was given, and what to do;
 * it starts with the code.
 */
export class PerfError extends Error {
  override readonly name = 'PerfError';

  constructor(
    readonly code: PerfErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(`${code}: ${message}`, options);
  }
}
