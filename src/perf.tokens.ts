/** The validated options of the application. */
export const PERF_RESOLVED_OPTIONS = Symbol('PERF_RESOLVED_OPTIONS');
