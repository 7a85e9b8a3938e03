export { PerfModule } from './perf.module.js';
export type { PerfModuleScope } from './perf.module.js';
export type { PerfModuleOptions } from './perf.options.js';
export type { SinkOption } from './perf.sinks.js';
export { PerfService } from './perf.service.js';
export type { SnapshotEndpointOptions } from './perf.snapshot-endpoint.js';

export { SkipPerf, SlowMs } from './latency/route.decorators.js';
export { Measured } from './work/measured.decorator.js';
export { PerfInterceptor } from './work/perf.interceptor.js';
export type { LatencyOptions } from './latency/latency.options.js';

export { NoCompression } from './compression/uncompressed.js';
export { SharedResponse } from './compression/shared-response/shared-response.decorator.js';
export type { CompressionOptions } from './compression/compression.options.js';
export type { ContentCoding } from './compression/rules/accept-encoding.js';
export type { SharedResponseOptions } from './compression/shared-response/shared-route.js';
export { createResourceSampler, ResourceSampler, type ResourceSamplerSource } from './resources/resource-sampler.js';
export type { ResourceAdvice } from './resources/resource-advice.js';
export type { ResourcesOptions } from './resources/resources.options.js';
export { describeResources } from './core/resource-text.js';
export type { EventLoopOptions, ReplayOptions } from './event-loop/event-loop.options.js';
export { Experiment, Variant } from './experiments/experiment.decorator.js';
export { Experiments } from './experiments/experiments.js';
export type { ExperimentsOptions } from './experiments/experiments.options.js';
export type { StopOptions } from './experiments/stop/stop-option.js';
export type { GateAnswer, GateClient } from './experiments/gates/gate-client.js';
export { staticGates } from './experiments/gates/static-gates.js';
export type { ExperimentMetric, ExperimentReport, ReportOptions } from './experiments/report/experiment-report.js';
export { reportTotals } from './experiments/report/report-totals.js';
export { compareVariants } from './experiments/statistics/compare-variants.js';
export type {
  CompareOptions,
  Comparison,
  SampleRatio,
  UnitTotals,
  VariantMean,
} from './experiments/statistics/compare-variants.js';
export type { ExperimentTotals } from './experiments/totals/experiment-totals.js';
export { mergeTotals } from './experiments/totals/merge-totals.js';

export { DeferWork } from './defer/decorator/defer-work.decorator.js';
export { DurableWork } from './defer/decorator/durable-work.decorator.js';
export { defer, Deferrer } from './defer/deferrer.js';
export type { RejectedWork } from './defer/spill/dead-letters.js';
export type { DeferOptions, DeferOverflow } from './defer/defer.options.js';
export type {
  DeferContext,
  DeferFunction,
  DeferInfo,
  DeferredWork,
  DeferTarget,
  DeferWhen,
  DeferWorkOptions,
  JobQueue,
  BatchItem,
  DeferredBatchWork,
  EnqueueOptions,
} from './defer/deferred-work.js';
export type {
  DurableJob,
  DurableJobOptions,
  DurableStore,
  DurableStoreHost,
  NewDurableJob,
  SpillOptions,
  WorkKind,
} from './defer/durable/durable-store.js';

export type { UsersOptions } from './users/users.options.js';
export type { UpstreamCall, UpstreamOptions } from './upstream/upstream.options.js';

export { fileHistory, type FileHistoryOptions } from './history/file-history.js';
export type { HistoryStore, HistoryStoreHost, OpenHistoryStore } from './history/history-store.js';
export type { HistoryOptions } from './history/history.options.js';
export type { HistoryRow } from './history/rows/row.js';
export type { Tier } from './history/rows/tiers.js';
export type { DashboardOptions } from './dashboard/dashboard.options.js';

export type { PerfExtension } from './request/extension.js';

export type { LogFormat } from './sinks/log-format.js';
export { loggerSink, type LoggerSinkOptions } from './sinks/logger.sink.js';

export type { RecordedTraffic, Recording } from './ports/recording.js';
export type { PerfRequest } from './core/perf-request.js';
export { PerfError, type PerfErrorCode } from './core/perf.error.js';
export type { PerfSink, PerfSinkHost, RouteHistogram } from './core/sink.js';
export type {
  Change,
  CompareWhat,
  HistoryPoint,
  HistorySeries,
  PerfComparison,
  RangeFigures,
  RouteComparison,
  TimeRange,
} from './ports/history.js';
export type { Profile } from './ports/loop-profile.js';
export type { PerfHealth, PerfReadiness } from './ports/overview.js';
export type { Verdict, VerdictReason } from './core/verdict.js';
export type {
  BlockCause,
  BlockRecord,
  DeferredRecord,
  PerfRecord,
  RequestRecord,
  RequestRef,
  ResourceRecord,
  RequestTime,
  ResourceSample,
  SizeNote,
  Unit,
  UpstreamKind,
  UpstreamUse,
  VerdictRecord,
  WorkRecord,
  WorkType,
} from './core/record.js';
export type {
  CachedMethodStats,
  CompressionStats,
  DeferStats,
  Durations,
  Estimate,
  Finding,
  EventLoopSnapshot,
  OffloadStats,
  PerfSnapshot,
  PoolSnapshot,
  RouteSnapshot,
  RouteTime,
  RouteUpstream,
  ResilientUpstreamStats,
  UpstreamSnapshot,
  UserUse,
  WorkSnapshot,
} from './core/snapshot.js';
