/** The validated options of the application. */
export const PERF_RESOLVED_OPTIONS = Symbol('PERF_RESOLVED_OPTIONS');
/** The application's extensions, each with a name of its own. */
export const PERF_EXTENSIONS = Symbol('PERF_EXTENSIONS');
