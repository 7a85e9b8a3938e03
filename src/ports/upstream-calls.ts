/** Measures calls of clients without a diagnostics channel. Not provided with `upstream: false`. */
export abstract class UpstreamCalls {
  abstract timed<T>(target: string, work: () => T): T;
  /** @throws PERF_ERR_WATCH, PERF_ERR_OPTION */
  abstract watch(client: object, options?: { target?: string }): void;
  /** Calls that are on no request, by target. */
  abstract countUnplaced(): ReadonlyMap<string, number>;
}
