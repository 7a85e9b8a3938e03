import { entryOf } from '../core/entry-of.js';
import { Histogram } from '../core/histogram.js';
import { reasonOf } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import type { UpstreamKind } from '../core/record.js';
import type { Route } from '../request/routes.js';
import { CallTrend } from './call-trend.js';
import type { UpstreamCall, UpstreamOptions } from './upstream.options.js';

/** What requests of one route have asked of a target. */
export interface AskedBy {
  requests: number;
  calls: number;
  wallMs: number;
  /** Sum of the calls of each request's most frequent URL or command. */
  alike: number;
  /** What they waited for this target: their calls to several at once are shared out. */
  waitMs: number;
  /** Of `waitMs`: what one call would have saved in place of those of the most frequent URL or command. */
  repeatedMs: number;
}

const NOTHING_ASKED: AskedBy = { requests: 0, calls: 0, wallMs: 0, alike: 0, waitMs: 0, repeatedMs: 0 };

/** What one request has asked of a target. */
export type Asked = Readonly<Omit<AskedBy, 'requests'>>;

/** One upstream: what has been asked of it, and by whom. */
export class Target {
  calls = 0;
  errors = 0;
  inFlight = 0;
  readonly durations = new Histogram();
  readonly trend = new CallTrend();
  readonly routes = new Map<Route, AskedBy>();

  constructor(
    /** `'http api.github.com'` */
    readonly name: string,
    readonly kind: UpstreamKind,
  ) {}

  /** A call has ended. */
  took(ms: number): void {
    this.durations.record(ms);
    this.trend.add(ms);
  }

  /** Adds what a request of a route has asked. */
  askedBy(route: Route, { calls, wallMs, alike, waitMs, repeatedMs }: Asked): void {
    const row = entryOf(this.routes, route, () => ({ ...NOTHING_ASKED }));
    row.requests += 1;
    row.calls += calls;
    row.wallMs += wallMs;
    row.alike += alike;
    row.waitMs += waitMs;
    row.repeatedMs += repeatedMs;
  }
}

/** A call as its client tells it. */
export interface MadeCall extends UpstreamCall {
  /** The first word of its target: `'redis'`, `'mysql'`. @default its kind */
  readonly client?: string;
  /** Calls that are alike have one text: a statement. It is kept while the request runs, and never shown. */
  readonly what?: string;
}

/** Longer ones are cut: a target is a label. */
const MAX_NAME = 100;

/** Finds the target of a call; beyond a number of them all are `other`. */
export class Targets {
  private readonly found = new Map<string, Target>();
  private readonly other = new Target('other', 'other');

  constructor(
    private readonly options: {
      readonly target: NonNullable<UpstreamOptions['target']> | null;
      readonly maxTargets: number;
    },
    private readonly report: OncePerCause,
  ) {}

  get all(): readonly Target[] {
    const named = [...this.found.values()];
    return this.other.calls === 0 ? named : [...named, this.other];
  }

  of(call: MadeCall): Target {
    return this.named(this.nameOf(call), call.kind);
  }

  named(given: string, kind: UpstreamKind): Target {
    const name = given.slice(0, MAX_NAME);
    const known = this.found.get(name);
    if (known !== undefined) return known;
    // Whose name it is: two of one name would be two series of one label.
    if (this.found.size >= this.options.maxTargets || name === this.other.name) return this.other;
    const target = new Target(name, kind);
    this.found.set(name, target);
    return target;
  }

  private nameOf({ client, kind, host, method, path }: MadeCall): string {
    const usual = `${client ?? kind} ${host}`;
    const { target } = this.options;
    if (target === null) return usual;
    try {
      const given: unknown = target({ kind, host, method, path });
      if (typeof given === 'string' && given !== '') return given;
      throw new TypeError('it returned no text');
    } catch (error) {
      const cause = `\`upstream.target\` failed: ${reasonOf(error)}`;
      this.report.report(cause, `${cause}. The usual name is taken.`);
      return usual;
    }
  }
}
