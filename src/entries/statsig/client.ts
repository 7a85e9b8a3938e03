import { optionalPeer } from '../../core/optional-peer.js';
import { describeReason } from '../../core/reason.js';

/** A user as the legacy SDK takes it. The core SDK wants an instance of its own class, made from the same fields. */
export interface StatsigUserFields {
  userID: string;
  customIDs?: Readonly<Record<string, string>>;
}

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

export interface StatsigEvent {
  name: string;
  /** When it happened, epoch milliseconds. */
  at: number;
  user: StatsigUserFields;
  value: number | null;
  metadata: StatsigMetadata;
}

export type StatsigUserClass = new (fields: StatsigUserFields) => object;

/**
 * The class of users in `@statsig/statsig-node-core`: of a plain object its client prints an error and drops the event.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function coreUserClass(neededBy: string): Promise<StatsigUserClass> {
  const name = '@statsig/statsig-node-core';
  return (await optionalPeer(name, neededBy, () => import('@statsig/statsig-node-core'))).StatsigUser;
}

/** The SDK puts the secret key into the URL of its specs, and URLs into its messages. */
export const reasonWithoutKey = (error: unknown): string =>
  describeReason(error).replaceAll(/secret-[\w-]+/g, 'secret-…');
