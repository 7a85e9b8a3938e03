import { currentRequest } from '../request/request-state.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import { PerfApplication } from '../request/application.js';
import { FEATURE, type PerfExtension } from '../request/extension.js';
import type { Feature, FeatureBoot } from '../request/feature.js';
import type { MakeBreaker } from './breaker.js';
import { Deadlines } from './deadlines.js';
import type { GateHost } from './gate.js';
import type { Guard } from './guard.js';
import { guardOption, type GuardOptions, type ResolvedGuard } from './guard.options.js';
import type { GuardedUpstream } from './guarded-upstream.js';
import { RedisGuard } from './redis/redis-guard.js';
import { RedisUpstream } from './redis/redis-upstream.js';
import { answerRetryAfter } from './retry-after.js';
import { UpstreamGuard } from './upstream-guard.js';
import { upstreamToken } from './upstream.decorator.js';

/** The guarded upstreams of one application. */
class GuardFeature implements Feature {
  readonly [FEATURE] = true;
  private readonly deadlines: Deadlines;
  private readonly guards = new Map<string, Guard>();
  private giveAdapterBack: () => void = () => {};

  constructor(
    private readonly options: ResolvedGuard,
    private readonly host: PerfApplication,
    private readonly loadBreakers: () => Promise<MakeBreaker>,
  ) {
    this.deadlines = new Deadlines(host.nowMs);
    const gateHost = this.gateHost();
    for (const [name, upstream] of options.upstreams) {
      const guard =
        upstream instanceof RedisUpstream
          ? new RedisGuard(name, upstream, gateHost)
          : new UpstreamGuard(name, upstream, gateHost);
      this.guards.set(name, guard);
    }
  }

  of(name: string): GuardedUpstream | undefined {
    return this.guards.get(name);
  }

  async install({ adapter }: FeatureBoot): Promise<void> {
    if (!this.host.enabled) return;
    const makeBreaker = await this.loadBreakers();
    for (const guard of this.guards.values()) guard.use(makeBreaker);
    if (adapter !== null) this.giveAdapterBack = answerRetryAfter(adapter);
  }

  snapshot(): Pick<PerfSnapshot, 'guard'> {
    if (!this.host.enabled) return { guard: null };
    return { guard: Object.fromEntries(Array.from(this.guards, ([name, guard]) => [name, guard.stats()])) };
  }

  /** After the last request: whoever still calls in its own shutdown is guarded, with timers that hold nothing open. */
  close(): void {
    for (const guard of this.guards.values()) guard.close();
    this.deadlines.close();
    this.giveAdapterBack();
  }

  private gateHost(): GateHost {
    const { requests, nowMs, report } = this.host;
    const { requestDeadlineMs } = this.options;
    return {
      nowMs,
      deadlines: this.deadlines,
      requestDeadlineMs,
      report: (cause, message) => report.report(cause, message),
      requestDueMs: () => {
        if (requestDeadlineMs === null) return Infinity;
        const request = currentRequest(requests);
        // A timer or a poller that it has started outlives it, and is nobody's request.
        return request === null || request.closed ? Infinity : request.startedMs + requestDeadlineMs;
      },
    };
  }
}

/**
 * The extension.
 * @throws PERF_ERR_OPTION
 */
export function guardExtension(options: GuardOptions, loadBreakers: () => Promise<MakeBreaker>): PerfExtension {
  const resolved = guardOption.read(options, 'guard');
  const feature = {
    provide: GuardFeature,
    inject: [PerfApplication],
    useFactory: (application: PerfApplication) => new GuardFeature(resolved, application, loadBreakers),
  };
  const upstreams = [...resolved.upstreams.keys()].map((name) => ({
    provide: upstreamToken(name),
    inject: [GuardFeature],
    useFactory: (guards: GuardFeature) => guards.of(name),
  }));
  return { name: 'guard', providers: [feature, ...upstreams] };
}
