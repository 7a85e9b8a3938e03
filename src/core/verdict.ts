/** One part of a change: its share, 0 to 1. */
export interface VerdictReason {
  /**
   * `mix`: slower routes have a larger share of the requests; `own`: the handler's own work; `loop-wait`: the event loop was busy with something
   * else; `upstream`: calls to others; `unexplained`: timers, files, clients without a channel.
   */
  part: 'mix' | 'own' | 'loop-wait' | 'upstream' | 'unexplained';
  /** The upstream, the route, or what kept the loop. */
  name: string;
  share: number;
}

/** Something became worse or better, and stayed so for ten minutes at least. */
export interface Verdict {
  id: string;
  kind: 'worse' | 'better';
  state: 'active' | 'resolved';
  /** Epoch milliseconds. */
  since: number;
  scope: 'site' | 'routes' | 'users' | 'upstream' | 'pod';
  /** The pod, user or upstream of the scope; null of `site` and `routes`. */
  who?: string | null;
  metric: 'latency' | 'errors' | 'blocked' | 'over';
  /** `'GET /users/:id'` */
  routes: readonly string[];
  /** Relative: 0.5 is half as much again. Of `errors`, `blocked` and `over` a difference of shares: 0.05 is five of a hundred more. */
  change: number;
  /** The 95 % interval of `change`, from the spread of windows of five minutes. */
  ci: readonly [number, number];
  /** `week`: the same hours of up to five weeks before; `day`: the 24 hours before; `release`: the release before. */
  against: 'week' | 'day' | 'release';
  /** The greatest first; shares add up to 1. */
  because: readonly VerdictReason[];
  text: string;
}

/** The part of a verdict's text that names its user. */
export const forUser = (name: string): string => `for user ${name}`;

/** The text of a verdict with another name for its user. */
export const withUserNamed = ({ scope, who, text }: Verdict, nameUser: (userId: string) => string): string =>
  scope === 'users' && typeof who === 'string' ? text.replace(forUser(who), () => forUser(nameUser(who))) : text;
