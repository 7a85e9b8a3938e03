/** A user as the legacy SDK takes it. The core SDK wants an instance of its own class, made from the same fields. */
export interface StatsigUserFields {
  userID: string;
  customIDs?: Readonly<Record<string, string>>;
}

/** What Statsig stores beside an event's value. */
export type StatsigMetadata = Record<string, string | number | null>;

/**
 * The part of a Statsig client that is used: `StatsigServer` or `Statsig` of `statsig-node`, or `Statsig` of
 * `@statsig/statsig-node-core`. Structural, so neither package has to be installed for the other's users.
 */
export interface StatsigClient {
  // `never`: the two SDKs' user types have nothing in common that both accept.
  logEvent(user: never, eventName: string, value?: string | number | null, metadata?: StatsigMetadata | null): void;
  /** Legacy: the same, with the time at which it happened. */
  logEventObject?(event: never): void;
  /** Legacy: returns the same promise, or resolves at once, when it was called before. */
  initializeAsync?(): Promise<unknown>;
  /** Legacy. With a timeout it posts once; without, a failing batch is posted up to 63 times. */
  flush?(timeoutMs?: number): Promise<unknown>;
  /** Core. */
  flushEvents?(): Promise<{ isSuccess: boolean }>;
}

/** One event on its way to Statsig. */
export interface StatsigEvent {
  name: string;
  /** When it happened, epoch milliseconds. */
  at: number;
  user: StatsigUserFields;
  value: number | null;
  metadata: StatsigMetadata;
}
