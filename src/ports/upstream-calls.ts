/** Measures calls of clients without a diagnostics channel. Not provided with `upstream: false`. */
export abstract class UpstreamCalls {
  /** `isOwn`: a target of this library's, of which the application has a fixed number. */
  abstract timed<T>(target: string, work: () => T, isOwn?: boolean): T;
  /** @throws PERF_ERR_WATCH, PERF_ERR_OPTION */
  abstract watch(client: object, options?: { target?: string }): void;
  /** Calls that are on no request, by target. */
  abstract countUnplaced(): ReadonlyMap<string, number>;
}
