import { getOrAdd } from '../core/get-or-add.js';
import { Histogram } from '../core/histogram.js';
import { describeReason } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import type { UpstreamKind } from '../core/record.js';
import type { Route } from '../request/routes.js';
import { Pools } from './pool.js';
import type { UpstreamCall, UpstreamOptions } from './upstream.options.js';

export interface RouteCalls {
  calls: number;
  wallMs: number;
  /** Sum over requests: repetitions of the URL or command that was repeated most. */
  repeats: number;
  /** Time that requests waited for this target; calls to several targets at once share it. */
  waitMs: number;
  /** Time that they waited for one of its connections. */
  poolWaitMs: number;
}

/** Calls of one request to one target. */
interface RequestUse {
  readonly calls: number;
  readonly wallMs: number;
  /** Repetitions of the URL or command that has most of them. */
  readonly mostRepeats: number;
}

const startRouteCalls = (): RouteCalls => ({ calls: 0, wallMs: 0, repeats: 0, waitMs: 0, poolWaitMs: 0 });

/** One upstream: its calls, and the routes that make them. */
export class Target {
  calls = 0;
  errors = 0;
  inFlight = 0;
  /** Calls of which no request is known, though one may have made them; calls of queue workers are left out. */
  unplaced = 0;
  readonly durations = new Histogram();
  readonly routes = new Map<Route, RouteCalls>();
  /** Null while no pool of this target is watched. */
  pools: Pools | null = null;

  constructor(
    /** `'http api.github.com'` */
    readonly name: string,
    readonly kind: UpstreamKind,
  ) {}

  addRequest(route: Route, { calls, wallMs, mostRepeats }: RequestUse, waitMs: number, poolWaitMs: number): void {
    const row = getOrAdd(this.routes, route, startRouteCalls);
    row.calls += calls;
    row.wallMs += wallMs;
    row.repeats += mostRepeats;
    row.waitMs += waitMs;
    row.poolWaitMs += poolWaitMs;
  }
}

const startHosts = (): Map<string, Target> => new Map();

/** Longer names are cut: a target is a label. */
const MAX_NAME = 100;

/** Finds the target of a call; beyond `maxTargets` all calls are `other`. */
export class Targets {
  private readonly found = new Map<string, Target>();
  /** Targets with the default name, by client and host: finding one builds no string. */
  private readonly usual = new Map<string, Map<string, Target>>();
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
    return this.other.calls === 0 && this.other.pools === null ? named : [...named, this.other];
  }

  /** `client`: the first word of its usual name, `'redis'`, `'mysql'`. */
  find(kind: UpstreamKind, client: string, host: string, method: string, path = ''): Target {
    const { target: name } = this.options;
    if (name !== null) return this.named(this.nameFor({ kind, host, method, path }, client, name), kind);
    const hosts = getOrAdd(this.usual, client, startHosts);
    let target = hosts.get(host);
    if (target === undefined) {
      target = this.named(`${client} ${host}`, kind);
      if (target !== this.other) hosts.set(host, target);
    }
    return target;
  }

  /** The target of this name, new where it is unknown. */
  named(given: string, kind: UpstreamKind): Target {
    const name = given.slice(0, MAX_NAME);
    const known = this.found.get(name);
    if (known !== undefined) return known;
    // A second target named `other` would be a second series of one label.
    if (this.found.size >= this.options.maxTargets || name === this.other.name) return this.other;
    const target = new Target(name, kind);
    this.found.set(name, target);
    return target;
  }

  private nameFor(made: UpstreamCall, client: string, name: NonNullable<UpstreamOptions['target']>): string {
    try {
      const given: unknown = name(made);
      if (typeof given === 'string' && given !== '') return given;
      throw new TypeError('it returned no text');
    } catch (error) {
      const cause = `\`upstream.target\` failed: ${describeReason(error)}`;
      this.report.report(cause, `${cause}. The usual name is taken.`);
      return `${client} ${made.host}`;
    }
  }
}
