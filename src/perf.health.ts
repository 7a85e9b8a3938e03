/** Whether the process can do its work, for a health check. */
export interface PerfHealth {
  readonly status: 'ok' | 'degraded';
  /** The reasons in words; empty when all is well. A feature that is off has none. */
  readonly reasons: readonly string[];
}

/** Whether the process shall get requests, for a readiness probe. */
export interface PerfReadiness {
  readonly ready: boolean;
  /** Why not, in words; empty when it is ready. */
  readonly reasons: readonly string[];
}
