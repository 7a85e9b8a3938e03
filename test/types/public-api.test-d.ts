// What must compile and what must not, checked by `npm run typecheck`: a `@ts-expect-error` above a line that compiles is an error.
import { Controller, Get, Injectable, Module, Post, type DynamicModule } from '@nestjs/common';
import {
  compareVariants,
  type Comparison,
  createResourceSampler,
  defer,
  type DeferContext,
  type DeferInfo,
  type DeferredWork,
  Deferrer,
  DeferWork,
  DurableWork,
  type DurableStore,
  Experiment,
  type ExperimentReport,
  Experiments,
  type ExperimentTotals,
  type GateClient,
  loggerSink,
  mergeTotals,
  NoCompression,
  PerfError,
  type PerfErrorCode,
  PerfInterceptor,
  PerfModule,
  type PerfModuleOptions,
  type PerfRecord,
  PerfService,
  type Profile,
  type PerfSink,
  type PerfSnapshot,
  type RequestRef,
  type ResourceAdvice,
  type ResourceSample,
  ResourceSampler,
  type Verdict,
  SharedResponse,
  SkipPerf,
  SlowMs,
  staticGates,
  type Unit,
  Variant,
} from 'nestjs-perf';
import { bullmqStore } from 'nestjs-perf/bullmq';
import type { Offloader, OffloadStats } from 'nestjs-perf/offload';
import { openTelemetrySink } from 'nestjs-perf/opentelemetry';
import { prometheusSink } from 'nestjs-perf/prometheus';
import { statsigGates, statsigSink } from 'nestjs-perf/statsig';
import { type MemorySink, memorySink, overridePerfSinks, settle } from 'nestjs-perf/testing';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import { Queue } from 'bullmq';
import type { FastifyRequest } from 'fastify';
import { Redis } from 'ioredis';
import { Registry } from 'prom-client';
import { StatsigServer } from 'statsig-node';
import { expectTypeOf } from 'vitest';

declare const app: import('@nestjs/common').INestApplication;
declare const deferrer: Deferrer;
declare const experiments: Experiments;
declare const perf: PerfService;
declare const record: PerfRecord;

// --- the module ---------------------------------------------------------------------------------------------------
@Injectable()
class OptionsFactory {
  create(): PerfModuleOptions {
    return {
      sinks: [loggerSink({ format: 'object', summaryMs: 10_000 }), memorySink(), 'SINK_TOKEN', ProvidedSink],
      unit: (request) => ({ userId: request.user.id }),
      release: '1.2.3',
      flushTimeoutMs: 1_000,
      snapshotEndpoint: { authorize: (request) => request.user.admin },
      experiments: { gates: staticGates({}), unit: ({ user, headers }) => ({ userId: user.id ?? headers['x-user'] }) },
    };
  }
}

class ProvidedSink implements PerfSink {
  readonly name = 'provided';
  publish() {}
}
// Callbacks may name their framework's own request.
PerfModule.forRoot({ unit: (request: FastifyRequest) => ({ userId: request.id }) });

expectTypeOf(PerfModule.forRoot()).toExtend<DynamicModule>();
PerfModule.forRoot({ isGlobal: false, latency: false, eventLoop: { thresholdMs: 20 } });
PerfModule.forRootAsync({
  inject: ['CONFIG'],
  useFactory: async () => ({ latency: { slowMs: 500 } }),
  isGlobal: false,
});
PerfModule.forRootAsync({ useClass: OptionsFactory });
PerfModule.forRootAsync({ useExisting: OptionsFactory });

// @ts-expect-error an unknown option
PerfModule.forRoot({ latncy: true });
// @ts-expect-error an unknown option inside a feature
PerfModule.forRoot({ latency: { slow: 5 } });
// @ts-expect-error milliseconds are a number
PerfModule.forRoot({ latency: { slowMs: '5s' } });
// @ts-expect-error experiments need a gate client: `true` says nothing
PerfModule.forRoot({ experiments: true });
// @ts-expect-error a gate client is not optional
PerfModule.forRoot({ experiments: {} });
// @ts-expect-error one of three words
PerfModule.forRoot({ defer: { overflow: 'drop' } });
// @ts-expect-error the endpoint is never open: `authorize` is not optional
PerfModule.forRoot({ snapshotEndpoint: { path: '/perf' } });
// @ts-expect-error not a content coding
PerfModule.forRoot({ compression: { encodings: ['lz4'] } });

expectTypeOf(overridePerfSinks(Test.createTestingModule({}), [memorySink()])).toEqualTypeOf<TestingModuleBuilder>();

// --- decorators -----------------------------------------------------------------------------------------------------
@Injectable()
@DurableWork()
class SendReceipt implements DeferredWork<{ orderId: string }> {
  prepare({ result, status, requestId }: DeferContext) {
    expectTypeOf(status).toEqualTypeOf<number | null>();
    expectTypeOf(requestId).toEqualTypeOf<string>();
    return { orderId: (result as { id: string }).id };
  }
  run({ orderId }: { orderId: string }, { signal, attempt, requestId, status }: DeferInfo) {
    expectTypeOf(orderId).toEqualTypeOf<string>();
    expectTypeOf({ signal, attempt, requestId, status }).toEqualTypeOf<{
      signal: AbortSignal;
      attempt: number;
      requestId: string | null;
      status: number | null;
    }>();
  }
}
@DeferWork(SendReceipt)
@NoCompression()
@SkipPerf()
@Controller()
class Decorated {
  @Post()
  @DeferWork(SendReceipt, { name: 'receipt', when: 'always', durable: true, timeoutMs: 1, attempts: 3, queue: 'mail' })
  @DeferWork(({ result, request, error }) => [result, request, error])
  create() {}
  @Get()
  @SlowMs(5_000)
  @SkipPerf()
  @NoCompression()
  @SharedResponse({ ttlMs: 15_000, varyBy: (request) => request.user.id })
  list() {}
  @Get('gated')
  @Experiment('gate')
  gated(@Variant('gate') variant: 'on' | 'off') {
    return variant;
  }
}
Module({ controllers: [Decorated], providers: [SendReceipt, PerfInterceptor] });

// @ts-expect-error a class without run() is no work
DeferWork(class Nothing {});
// @ts-expect-error one of three words
DeferWork(SendReceipt, { when: 'never' });
// @ts-expect-error how long an answer may be shared has no default
SharedResponse();
// @ts-expect-error milliseconds are a number
SlowMs('5s');
// @ts-expect-error a gate has a name
Experiment();

// --- services -------------------------------------------------------------------------------------------------------
expectTypeOf(perf.snapshot()).toEqualTypeOf<PerfSnapshot>();
expectTypeOf(perf.health()).toEqualTypeOf<{
  readonly status: 'ok' | 'degraded';
  readonly reasons: readonly string[];
}>();
expectTypeOf(perf.profile({ route: 'GET /users/:id', seconds: 30 })).toEqualTypeOf<Promise<Profile>>();
// @ts-expect-error -- a number
void perf.profile({ seconds: '30' });
perf.note({ rows: 4_000 });
perf.note({ rows: 4_000, bytes: 12 });
// @ts-expect-error sizes only: nothing that could hold data of users
perf.note({ sql: 'SELECT 1' });

deferrer.defer((info) => info.signal.throwIfAborted(), { timeoutMs: 5 });
deferrer.addJob(new Queue('mail'), 'welcome', { id: 1 }, { delay: 5 });
defer(async () => {}, { name: 'audit' });
expectTypeOf(deferrer.idle()).toEqualTypeOf<Promise<void>>();
expectTypeOf(deferrer.stats().accepted).toEqualTypeOf<number>();
// @ts-expect-error a function is in this process: durable work is a class
deferrer.defer(() => {}, { durable: true });

expectTypeOf(experiments.check('gate')).toEqualTypeOf<boolean>();
expectTypeOf(experiments.totals()).toEqualTypeOf<ExperimentTotals>();
expectTypeOf(mergeTotals(experiments.totals(), experiments.totals())).toEqualTypeOf<ExperimentTotals>();
expectTypeOf(experiments.report('gate', { route: 'GET /x', metric: 'errors' })).toEqualTypeOf<ExperimentReport>();
expectTypeOf(
  compareVariants([{ unit: 'a', variant: 'off', count: 1, sum: 2 }], { control: 'off', treatment: 'on' }),
).toEqualTypeOf<Comparison>();
// @ts-expect-error both variants have to be named
compareVariants([], { control: 'off' });
// @ts-expect-error one row a unit: who it is has to be said
compareVariants([{ variant: 'off', count: 1, sum: 2 }], { control: 'off', treatment: 'on' });

const sampler = createResourceSampler({ root: '/fixture', now: () => 0, cpuLimitCores: 2 });
expectTypeOf(sampler).toEqualTypeOf<ResourceSampler>();
expectTypeOf(sampler.sample()).toEqualTypeOf<ResourceSample>();
expectTypeOf(sampler.latest).toEqualTypeOf<ResourceSample | null>();
expectTypeOf(sampler.recommend()).toEqualTypeOf<ResourceAdvice>();
// @ts-expect-error an injection token, made by createResourceSampler()
void new ResourceSampler();

// --- records --------------------------------------------------------------------------------------------------------
switch (record.kind) {
  case 'request':
    expectTypeOf(record.outcome).toEqualTypeOf<'completed' | 'aborted'>();
    expectTypeOf(record.unit).toEqualTypeOf<Unit | null>();
    break;
  case 'block':
    expectTypeOf(record.request).toEqualTypeOf<RequestRef | null>();
    expectTypeOf(record.cause).toEqualTypeOf<
      'javascript' | 'sync-io' | 'gc' | 'not-scheduled' | 'pile-up' | 'unknown'
    >();
    break;
  case 'resource':
    expectTypeOf(record.sample).toEqualTypeOf<ResourceSample>();
    break;
  case 'deferred':
    expectTypeOf(record.outcome).toEqualTypeOf<'completed' | 'failed' | 'timeout' | 'dropped'>();
    break;
  case 'verdict':
    expectTypeOf(record.verdict).toEqualTypeOf<Verdict>();
    break;
  case 'work':
    expectTypeOf(record.outcome).toEqualTypeOf<'completed' | 'failed'>();
    break;
  default:
    // Six kinds and no more: a seventh is a change for every sink.
    expectTypeOf(record).toEqualTypeOf<never>();
}
if (record.kind === 'request') {
  // @ts-expect-error a block's field
  void record.provenMs;
}
const snapshot = perf.snapshot();
// @ts-expect-error may be off
void snapshot.eventLoop.blocks;
// @ts-expect-error a snapshot is read, not written
snapshot.routes[0]!.statuses['2xx'] = 1;

// --- sinks, stores, gates -------------------------------------------------------------------------------------------
const own: PerfSink = {
  name: 'own',
  publish(records) {
    expectTypeOf(records).toEqualTypeOf<readonly PerfRecord[]>();
  },
};
// @ts-expect-error a sink has a name
const nameless: PerfSink = { publish() {} };
// @ts-expect-error and publishes
const silent: PerfSink = { name: 'silent' };
void [own, nameless, silent];
expectTypeOf(memorySink()).toEqualTypeOf<MemorySink>();
expectTypeOf(memorySink().records).toExtend<readonly PerfRecord[]>();
expectTypeOf(settle(app)).toEqualTypeOf<Promise<void>>();

prometheusSink({ path: '/metrics', registry: new Registry(), authorize: async () => true });
openTelemetrySink({ meterProvider: new MeterProvider() });
const statsig = new StatsigServer('secret-x');
expectTypeOf(statsigSink({ client: statsig, requests: 'rollup', sampleRate: 0.1, pod: 'a' })).toExtend<PerfSink>();
expectTypeOf(statsigGates(statsig)).toExtend<GateClient>();
expectTypeOf(staticGates({ fast: true, half: 0.5 })).toExtend<GateClient>();
// @ts-expect-error a share or a switch
staticGates({ fast: 'on' });
// @ts-expect-error `each` or `rollup`
statsigSink({ client: statsig, requests: 'some' });
const store = bullmqStore({
  connection: { host: 'localhost' },
  queue: 'q',
  worker: { concurrency: 5 },
  spillPath: '/x',
});
expectTypeOf(store).toExtend<DurableStore>();
expectTypeOf(store.queue).toExtend<(name?: string) => { name: string }>();
bullmqStore({ connection: new Redis(), worker: false });
// @ts-expect-error it has to connect somewhere
bullmqStore({ queue: 'q' });

// --- offload -------------------------------------------------------------------------------------------------------
expectTypeOf<ReturnType<Offloader['stats']>>().toEqualTypeOf<OffloadStats>();
expectTypeOf<OffloadStats['throttledMs']>().toEqualTypeOf<number>();

// --- errors ---------------------------------------------------------------------------------------------------------
declare const error: PerfError;
expectTypeOf(error).toExtend<Error>();
expectTypeOf(error.code).toEqualTypeOf<PerfErrorCode>();
const documented: PerfErrorCode[] = [
  'PERF_ERR_OPTION',
  'PERF_ERR_REGISTERED_TWICE',
  'PERF_ERR_DEFER_FULL',
  'PERF_ERR_OFF',
  'PERF_ERR_UNITS',
];
void documented;
