import type { PerfSnapshot } from '../core/snapshot.js';
import { PerfApplication } from '../request/application.js';
import { FEATURE, type PerfExtension } from '../request/extension.js';
import type { Feature } from '../request/feature.js';
import { currentRequest } from '../request/request-state.js';
import { CalledUpstream } from './called-upstream.js';
import { Deadlines } from './deadlines.js';
import type { Policies } from './policies.js';
import { RedisCalls } from './redis/redis-calls.js';
import { RedisUpstream } from './redis/redis-upstream.js';
import { resilienceOption, type ResilienceOptions, type ResolvedResilience } from './resilience.options.js';
import type { LimitedUpstream, ResilientUpstream } from './resilient-upstream.js';
import type { CallHost } from './upstream-limits.js';
import { upstreamToken } from './upstream.decorator.js';

/** The upstreams of one application. */
class ResilienceFeature implements Feature {
  readonly [FEATURE] = true;
  private readonly deadlines: Deadlines;
  private readonly upstreams = new Map<string, LimitedUpstream>();

  constructor(
    private readonly options: ResolvedResilience,
    private readonly application: PerfApplication,
    private readonly loadPolicies: () => Promise<Policies>,
  ) {
    this.deadlines = new Deadlines(application.nowMs);
    const host = this.callHost();
    for (const [name, upstream] of options.upstreams) {
      const calls =
        upstream instanceof RedisUpstream
          ? new RedisCalls(name, upstream, host)
          : new CalledUpstream(name, upstream, host);
      this.upstreams.set(name, calls);
    }
  }

  find(name: string): ResilientUpstream | undefined {
    return this.upstreams.get(name);
  }

  async install(): Promise<void> {
    if (!this.application.enabled) return;
    const policies = await this.loadPolicies();
    for (const upstream of this.upstreams.values()) upstream.apply(policies);
  }

  snapshot(): Pick<PerfSnapshot, 'resilience'> {
    if (!this.application.enabled) return { resilience: null };
    return { resilience: Object.fromEntries(Array.from(this.upstreams, ([name, calls]) => [name, calls.stats()])) };
  }

  /** Runs after the last request. Calls that a provider makes in its own shutdown keep their deadline. */
  close(): void {
    for (const upstream of this.upstreams.values()) upstream.close();
  }

  private callHost(): CallHost {
    const { requests, nowMs, report } = this.application;
    const { requestDeadlineMs } = this.options;
    return {
      nowMs,
      deadlines: this.deadlines,
      requestDeadlineMs,
      report: (cause, message) => report.report(cause, message),
      requestDueMs: () => {
        if (requestDeadlineMs === null) return Infinity;
        const request = currentRequest(requests);
        // A timer or a poller that the request has started outlives it.
        return request === null || request.closed ? Infinity : request.startedMs + requestDeadlineMs;
      },
    };
  }
}

/**
 * The extension.
 * @throws PERF_ERR_OPTION
 */
export function resilienceExtension(options: ResilienceOptions, loadPolicies: () => Promise<Policies>): PerfExtension {
  const resolved = resilienceOption.read(options, 'resilience');
  const feature = {
    provide: ResilienceFeature,
    inject: [PerfApplication],
    useFactory: (application: PerfApplication) => new ResilienceFeature(resolved, application, loadPolicies),
  };
  const upstreams = [...resolved.upstreams.keys()].map((name) => ({
    provide: upstreamToken(name),
    inject: [ResilienceFeature],
    useFactory: (resilience: ResilienceFeature) => resilience.find(name),
  }));
  return { name: 'resilience', providers: [feature, ...upstreams] };
}
