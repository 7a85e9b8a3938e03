import type { Resolved } from '../core/option.js';
import { toEpochMs } from '../core/clock.js';
import type { Histogram } from '../core/histogram.js';
import { LatencyFigures, type CountedRoute } from '../ports/latency-figures.js';
import type { RequestRecord, Unit } from '../core/record.js';
import { RecordHold } from '../ports/record-hold.js';
import type { Recorder } from '../core/recorder.js';
import type { RequestState } from '../request/request-state.js';
import { isMeasured, type Route } from '../request/routes.js';
import { RouteTimeFigures } from '../ports/route-time.js';
import type { RouteHistogram } from '../core/sink.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { Steps } from '../core/turns.js';
import { UNIT_OF_EXPERIMENTS, UserList } from '../ports/users.js';
import { PerfApplication } from '../request/application.js';
import { optionalPort, provideFeature, providePort, type Feature, type FeatureDefinition } from '../request/feature.js';
import { compileGlob } from './glob.js';
import { latencyOption } from './latency.options.js';
import { RouteStats, snapshotRoutes, readStats } from './route-stats.js';
import { addServerTiming } from './server-timing.js';

type Options = NonNullable<Resolved<typeof latencyOption>>;

/** One record and one histogram entry a request, written when it has ended. */
export class Latency implements Feature, LatencyFigures {
  private readonly ignored: readonly RegExp[];
  private wanted: Recorder['requestsWanted'] = 'none';

  constructor(
    private readonly options: Options,
    private readonly host: PerfApplication,
    private readonly holds: RecordHold | null,
    private readonly times: RouteTimeFigures | null,
    private readonly users: UserList | null,
  ) {
    this.ignored = options.ignore.map(compileGlob);
  }

  install(): void {
    const { recorder, routes } = this.host;
    this.wanted = recorder.requestsWanted;
    routes.measure = (route) => this.measure(route);
  }

  get addsServerTiming(): boolean {
    return this.options.serverTiming;
  }

  started(state: RequestState): void {
    addServerTiming(state, this.host.nowMs, this.times);
  }

  ended(state: RequestState): void {
    const { route } = state;
    const stats = route === null ? null : readStats(route);
    if (stats === null) return;
    const durationMs = state.endedMs - state.startedMs;
    if (state.aborted) stats.abortedCount += 1;
    else stats.completed(state.status, durationMs);
    if (state.firstByteMs !== 0) stats.headSent(state.firstByteMs - state.startedMs);
    // A scope of measured work has a record of its own.
    if (state.request === null) return;
    if (this.wanted === 'none' || (this.wanted === 'slow' && !isSlow(state, stats.slowMs))) return;
    if (this.holds?.hold(state, this.record) !== true) this.record(state);
  }

  private readonly record = (state: RequestState): void => {
    const { slowMs } = readStats(state.route!)!;
    this.host.recorder.push(createRequestRecord(state, this.host, slowMs, this.users?.redact ?? null));
  };

  *snapshotSteps(): Steps<Pick<PerfSnapshot, 'routes'>> {
    const { requests, routes } = this.host;
    const inFlight = new Map<Route, number>();
    for (const { route, request } of requests.states()) {
      // In middleware still: without a route so far.
      const own = route ?? (request === null ? null : routes.unmatched.forMethod(request.method));
      if (own !== null) inFlight.set(own, (inFlight.get(own) ?? 0) + 1);
    }
    return { routes: yield* snapshotRoutes(routes.all, inFlight, this.options.overMs, this.times) };
  }

  *histograms(): Iterable<RouteHistogram> {
    for (const route of this.host.routes.all) {
      for (const [status, histogram] of readStats(route)?.byStatus ?? [])
        yield { ...countRoute(route, histogram), status };
    }
  }

  *firstByteHistograms(): Iterable<Omit<RouteHistogram, 'status'>> {
    for (const route of this.host.routes.all) {
      const histogram = readStats(route)?.firstByte ?? null;
      if (histogram !== null) yield countRoute(route, histogram);
    }
  }

  *totals(): Iterable<CountedRoute> {
    for (const route of this.host.routes.all) {
      const stats = readStats(route);
      if (stats === null) continue;
      const { byStatus, abortedCount, blockedMs } = stats;
      const over = this.options.overMs.map((ms, index) => ({ ms, count: stats.over[index] ?? 0 }));
      yield { route, byStatus, abortedCount, over, blockedMs };
    }
  }

  private measure(route: Route): void {
    if (this.ignored.some((glob) => glob.test(route.pattern))) route.ignored = true;
    if (!isMeasured(route)) return;
    const { overMs, slowMs } = this.options;
    const stats = new RouteStats(overMs, route.handler?.slowMs ?? slowMs);
    route.stats = stats;
  }
}

const countRoute = (route: Route, histogram: Histogram): Omit<RouteHistogram, 'status'> => ({
  method: route.method,
  route: route.pattern,
  handler: route.handler?.name ?? null,
  count: histogram.count,
  sumMs: histogram.sumMs,
  countsAtMost: (boundsMs) => histogram.countsAtMost(boundsMs),
});

const isSlow = (state: RequestState, slowMs: number): boolean =>
  state.endedMs - state.startedMs > slowMs && !(state.pattern === '' && isLongPoll(state));

/** A poll of socket.io is meant to last: https://socket.io/docs/v4/engine-io-protocol/ */
const isLongPoll = ({ request }: RequestState): boolean => /[?&]transport=polling\b/.test(request?.url ?? '');

type Redact = UserList['redact'];

/** The user of a request, redacted with `users.redact`. */
function readUnit(state: RequestState, { units }: PerfApplication, redact: Redact): Unit | null {
  const unit = state.unit ?? units.of(state);
  // Experiments put the request's id where nobody is known.
  return unit === null || redact === null || unit.userId === state.id ? unit : { userId: redact(unit.userId) };
}

function createRequestRecord(
  state: RequestState,
  host: PerfApplication,
  slowMs: number,
  redact: Redact,
): RequestRecord {
  const { route, span } = state;
  const durationMs = state.endedMs - state.startedMs;
  const split = state.timing;
  const record: RequestRecord = {
    kind: 'request',
    id: state.id,
    method: route?.method ?? '_OTHER',
    route: route?.pattern ?? '',
    handler: route?.handler?.name ?? state.longestWork?.name ?? null,
    status: state.status,
    outcome: state.aborted ? 'aborted' : 'completed',
    startedAt: toEpochMs(state.startedMs),
    durationMs,
    firstByteMs: state.firstByteMs === 0 ? null : state.firstByteMs - state.startedMs,
    blockedMs: state.blockedMs,
    delayedMs: state.delayedMs,
    variants: state.variants,
    unit: readUnit(state, host, redact),
    note: state.note,
    release: host.release,
    time: split?.time ?? null,
    upstream: split?.upstream ?? null,
  };
  if (isSlow(state, slowMs) && !state.aborted) record.slow = true;
  if (state.unit !== null && state.unit !== record.unit) UNIT_OF_EXPERIMENTS.set(record, state.unit);
  if (span !== null) {
    record.traceId = span.traceId;
    record.spanId = span.spanId;
  }
  return record;
}

export const latencyFeature: FeatureDefinition<'latency', Options> = {
  name: 'latency',
  title: 'latency',
  observes: 'requests',
  option: latencyOption,
  token: Latency,
  providers: [
    provideFeature(
      'latency',
      Latency,
      [PerfApplication, ...[RecordHold, RouteTimeFigures, UserList].map(optionalPort)],
      (options: Options | null, ...given: [PerfApplication, RecordHold, RouteTimeFigures, UserList]) =>
        options === null ? null : new Latency(options, ...given),
    ),
    providePort(LatencyFigures, Latency),
  ],
};
