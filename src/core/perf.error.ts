/** Stable codes of {@link PerfError}. Adding one is a minor change, changing or removing one a major. */
export type PerfErrorCode =
  | 'PERF_ERR_OPTION'
  | 'PERF_ERR_REGISTERED_TWICE'
  | 'PERF_ERR_NEST_COPIES'
  | 'PERF_ERR_OFF'
  | 'PERF_ERR_DEFER_FULL'
  | 'PERF_ERR_DEFER_WORK'
  | 'PERF_ERR_DECORATOR'
  | 'PERF_ERR_EXTENSION'
  | 'PERF_ERR_CACHE_KEY'
  | 'PERF_ERR_NOT_LOADED'
  | 'PERF_ERR_LOAD_TIMEOUT'
  | 'PERF_ERR_RECORDING'
  | 'PERF_ERR_OFFLOAD'
  | 'PERF_ERR_OFFLOAD_DOWN'
  | 'PERF_ERR_OFFLOAD_FULL'
  | 'PERF_ERR_OFFLOAD_TIMEOUT'
  | 'PERF_ERR_SERIALIZE'
  | 'PERF_ERR_STORE'
  | 'PERF_ERR_UNITS'
  | 'PERF_ERR_WATCH'
  | 'PERF_ERR_MISSING_PEER'
  | 'PERF_ERR_DEADLINE'
  | 'PERF_ERR_OPEN'
  | 'PERF_ERR_BUSY';

/** Shared by the ESM and the CommonJS build of this package. */
const PERF_ERROR = Symbol.for('nestjs-perf:error');

/** Every error that this library throws. The message starts with the code, and ends with what to do. */
export class PerfError extends Error {
  /** True also of errors that must be Nest's as well, so that it answers with their status: see {@link markAsPerfError}. */
  static override [Symbol.hasInstance](this: { prototype: object }, error: unknown): boolean {
    if (typeof error !== 'object' || error === null) return false;
    return this === PerfError ? PERF_ERROR in error : Object.prototype.isPrototypeOf.call(this.prototype, error);
  }

  override readonly name = 'PerfError';

  constructor(
    readonly code: PerfErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(`${code}: ${message}`, options);
  }
}

Object.defineProperty(PerfError.prototype, PERF_ERROR, { value: true });

/** Errors of a class that cannot extend {@link PerfError}, because it extends a class of Nest's, count as one. */
export function markAsPerfError(prototype: Pick<PerfError, 'code' | 'message' | 'name'>): void {
  Object.defineProperty(prototype, PERF_ERROR, { value: true });
}
