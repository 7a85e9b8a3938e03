import type { PerfSnapshot } from '../core/snapshot.js';
import { PerfApplication } from '../request/application.js';
import { FEATURE, type PerfExtension } from '../request/extension.js';
import type { Feature } from '../request/feature.js';
import { currentRequest } from '../request/request-state.js';
import type { MakeBreaker } from './breaker.js';
import { CalledUpstream } from './called-upstream.js';
import { Deadlines } from './deadlines.js';
import type { CallHost, LimitedUpstream } from './limited-upstream.js';
import { RedisCalls } from './redis/redis-calls.js';
import { RedisUpstream } from './redis/redis-upstream.js';
import {
  resilienceOption,
  type ResilienceOptions,
  type ResolvedResilience,
  type ResolvedUpstream,
} from './resilience.options.js';
import { upstreamToken } from './upstream.decorator.js';

/** The upstreams of one application. */
class ResilienceFeature implements Feature {
  readonly [FEATURE] = true;
  readonly upstreams: ReadonlyMap<string, LimitedUpstream>;

  constructor(
    { requestDeadlineMs, upstreams }: ResolvedResilience,
    private readonly application: PerfApplication,
    private readonly loadBreaker: () => Promise<MakeBreaker>,
  ) {
    const { requests, nowMs, report } = application;
    const host: CallHost = {
      nowMs,
      deadlines: new Deadlines(nowMs),
      requestDeadlineMs,
      report: (cause, message) => report.report(cause, message),
      requestDueMs: () => {
        if (requestDeadlineMs === null) return Infinity;
        const request = currentRequest(requests);
        // A timer or a poller that the request has started outlives it.
        return request === null || request.closed ? Infinity : request.startedMs + requestDeadlineMs;
      },
    };
    const limited = (name: string, given: RedisUpstream | ResolvedUpstream): LimitedUpstream =>
      given instanceof RedisUpstream ? new RedisCalls(name, given, host) : new CalledUpstream(name, given, host);
    this.upstreams = new Map(Array.from(upstreams, ([name, given]) => [name, limited(name, given)]));
  }

  async install(): Promise<void> {
    if (!this.application.enabled) return;
    const makeBreaker = await this.loadBreaker();
    for (const upstream of this.upstreams.values()) upstream.limit(makeBreaker);
  }

  snapshot(): Pick<PerfSnapshot, 'resilience'> {
    if (!this.application.enabled) return { resilience: null };
    return { resilience: Object.fromEntries(Array.from(this.upstreams, ([name, calls]) => [name, calls.stats()])) };
  }

  /** Runs after the last request. Calls that a provider makes in its own shutdown keep their deadline. */
  close(): void {
    for (const upstream of this.upstreams.values()) upstream.close();
  }
}

/**
 * The extension.
 * @throws PERF_ERR_OPTION
 */
export function resilienceExtension(
  options: ResilienceOptions,
  loadBreaker: () => Promise<MakeBreaker>,
): PerfExtension {
  const resolved = resilienceOption.read(options, 'resilience');
  const feature = {
    provide: ResilienceFeature,
    inject: [PerfApplication],
    useFactory: (application: PerfApplication) => new ResilienceFeature(resolved, application, loadBreaker),
  };
  const upstreams = [...resolved.upstreams.keys()].map((name) => ({
    provide: upstreamToken(name),
    inject: [ResilienceFeature],
    useFactory: (resilience: ResilienceFeature) => resilience.upstreams.get(name),
  }));
  return { name: 'resilience', providers: [feature, ...upstreams] };
}
