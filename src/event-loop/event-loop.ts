import type { Server } from 'node:http';
import { monotonicMs } from '../core/clock.js';
import { inRootContext } from '../core/root-context.js';
import { SecretNames } from '../core/secret-names.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { HealthReason } from '../ports/overview.js';
import type { PerfApplication } from '../request/application.js';
import type { Feature, FeatureBoot } from '../request/feature.js';
import type { RequestState } from '../request/request-state.js';
import { WORD } from './beat.js';
import { classifyBlock, countVotes, measureOverlap } from './block.js';
import { createBlockRecord, type ClassifiedBlock, type RecordRules } from './block-record.js';
import { planTiming, type EventLoopSettings } from './event-loop.options.js';
import { GcObserver } from './gc.js';
import { captureFrames } from './interrupt/probe.js';
import { findLoopReasons } from './loop-statistics.js';
import { LoopWatch, nodeGauges, type Block } from './loop-watch.js';
import { PendingBlocks, type SeenBlock } from './pending-blocks.js';
import { LoopProfile } from './profile/loop-profile.js';
import { LoopProfiler } from './profile/profiler.js';
import { ProviderMethods } from './provider-methods.js';
import { formatAddress } from './replay/curl.js';
import type { Sample } from './sample.js';
import { Sampler } from './sampler.js';
import { Liveness } from './liveness.js';

/** The feature `eventLoop`: a record for every block that names the request and the line, and the profile by route. */
export class EventLoop implements Feature {
  readonly pending: PendingBlocks;
  readonly sampler: Sampler;
  readonly liveness: Liveness | null;
  readonly profile: LoopProfile | null;
  readonly profiler: LoopProfiler | null;
  private readonly watch: LoopWatch;
  private readonly gc = new GcObserver();
  private rules: RecordRules;
  private server: Server | null = null;
  private watching = false;
  private closed = false;
  /** The request that is ending right now: no longer in flight, but it was during a block that its end reveals. */
  private ending: RequestState | null = null;
  private readonly recording = new Set<Promise<void>>();

  constructor(
    readonly options: EventLoopSettings,
    private readonly application: Pick<PerfApplication, 'requests' | 'recorder' | 'report' | 'logger'>,
  ) {
    const { thresholdMs, replay, stack } = options;
    const { requests, report, logger } = application;
    const timing = planTiming(thresholdMs);
    this.watch = new LoopWatch(
      timing,
      nodeGauges,
      () => requests.inFlight,
      (block) => this.keepBlock(block),
      () => this.handleTick(),
      () => this.sampler.worker.wake(),
    );
    const { words } = this.watch.beat;
    const methods = (): ReadonlySet<string> => this.rules.methods?.names() ?? new Set();
    this.liveness = options.liveness && new Liveness(options.liveness, methods, logger, report);
    const sampler = new Sampler(words, timing, requests, stack, report, this.liveness);
    this.sampler = sampler;
    const profile = options.profile ? new LoopProfile(requests, monotonicMs) : null;
    this.profile = profile;
    if (profile !== null) sampler.onSample = (sample, ms) => profile.add(sample, ms);
    this.profiler = profile === null ? null : new LoopProfiler(profile, sampler, monotonicMs);
    this.pending = new PendingBlocks((block) => this.classify(block), this.failed);
    const secrets = new SecretNames(replay?.denyNames ?? []);
    const address = (): string | null => readAddress(this.server);
    this.rules = { secrets, replay, ownFolder: findOwnFolder(), methods: null, stack, address };
  }

  /** Called before routes are registered. Starts no thread yet: an application that serves nothing pays nothing. */
  install({ adapter, modules }: Pick<FeatureBoot, 'adapter' | 'modules'>): void {
    this.rules = { ...this.rules, methods: new ProviderMethods(modules) };
    const server = adapter?.getHttpServer() as Server | undefined;
    this.server = server ?? null;
    // The watch starts before the first request, which may block. A request of another server, or of `inject()`, starts it itself.
    server?.once('listening', this.startWatching);
  }

  start(): void {
    // `/live` answers probes while the application is still starting.
    if (this.liveness !== null) this.startWatching();
    this.watch.start();
  }

  started(state: RequestState): void {
    if (this.closed) return;
    if (!this.watching) this.startWatching();
    this.watch.requestStarted(state.startedMs);
  }

  ended(state: RequestState): void {
    if (this.closed) return;
    if (state.within === null) this.ending = state;
    this.watch.requestEnded(state.endedMs);
    this.ending = null;
    this.profile?.requestEnded(state);
  }

  /** Whether the sampler's thread runs: blocks before that name no request. */
  get isSampled(): boolean {
    return this.sampler.worker.running && this.watch.beat.words[WORD.started] === 1;
  }

  snapshot(): Pick<PerfSnapshot, 'eventLoop'> {
    return { eventLoop: this.watch.statistics.snapshot(monotonicMs()) };
  }

  reasons({ eventLoop }: PerfSnapshot): readonly HealthReason[] {
    return eventLoop === null ? [] : findLoopReasons(eventLoop);
  }

  async idle(): Promise<void> {
    // The caller's last block may still wait for the beat that ends it.
    this.watch.turned();
    await this.pending.settled();
    await Promise.all(this.recording);
  }

  async drain(): Promise<void> {
    this.profiler?.close();
    this.watch.stop();
    this.closed = true;
    const stopped = this.sampler.worker.stop();
    this.pending.close();
    await Promise.all(this.recording);
    await stopped;
    this.sampler.close();
    this.gc.stop();
  }

  private readonly startWatching = (): void => {
    if (this.watching || this.closed) return;
    this.watching = true;
    this.watch.statistics.restart(monotonicMs());
    this.profile?.start();
    inRootContext(() => {
      this.gc.start();
      this.sampler.start();
    });
  };

  private handleTick(): void {
    // Starts the sampler in applications without a server: jobs and consumers block as well.
    this.startWatching();
    this.watch.beat.words[WORD.debugged] = Number(isDebuggable());
    this.sampler.turned();
  }

  private keepBlock(block: Block): void {
    const { ending } = this;
    const inFlight = this.application.requests.states().filter(({ startedMs }) => startedMs < block.endMs);
    if (ending !== null && ending.startedMs < block.endMs && !inFlight.includes(ending)) inFlight.push(ending);
    this.pending.add({ block, inFlight, samples: this.sampler.within(block.sinceMs, block.endMs) });
  }

  private classify({ block, inFlight, samples }: SeenBlock): void {
    const gcMs = this.gc.within(block.startMs, block.endMs);
    // The counter of lost time also has what was lost since the block's end: time off the CPU bounds it.
    const offCpuMs = Math.max(0, (1 - block.cpuRatio) * (block.endMs - block.startMs));
    const lostMs = Math.min(block.readLostMs(), offCpuMs);
    const votes = countVotes(samples, block, lostMs);
    const { thresholdMs } = this.options;
    const classification = classifyBlock({ ...block, votes, gcMs, lostMs, thresholdMs, debugged: isDebuggable() });
    if (classification === null) return;
    const { request, othersWaited } = classification;
    const hasWaited = (state: RequestState): boolean => (request === null ? !votes.ran.has(state) : state !== request);
    const delayed = othersWaited ? inFlight.filter(hasWaited) : [];
    const scope = request === null ? null : findScope(votes.shown);
    this.charge(block, request, delayed, scope);
    const recorded = this.record({ block, classification, scope, samples: samples.length, gcMs, delayed });
    this.recording.add(recorded);
    void recorded.finally(() => this.recording.delete(recorded));
  }

  /** Adds the block to the times of the requests that it delayed, and of those that caused it. */
  private charge(
    block: Block,
    request: RequestState | null,
    delayed: readonly RequestState[],
    scope: RequestState | null,
  ): void {
    for (const state of delayed) state.delayedMs += measureOverlap(block, state);
    for (const state of [request, scope]) {
      if (state === null) continue;
      const ms = measureOverlap(block, state);
      state.blockedMs += ms;
      const stats = state.route?.stats ?? null;
      if (stats !== null) stats.blockedMs += ms;
    }
  }

  private async record(classified: ClassifiedBlock): Promise<void> {
    try {
      const shown = this.options.stack ? classified.classification.shown : [];
      const locate = await this.sampler.locate(shown.flatMap(({ frames }) => frames));
      this.application.recorder.push(createBlockRecord(classified, locate, this.rules));
    } catch (error) {
      this.failed(error);
    }
  }

  private readonly failed = (error: unknown): void => {
    const cause = 'an event-loop block could not be recorded';
    // The error is the application's own, and may contain its data: only its kind is reported.
    this.application.report.report(cause, `${cause} (${error instanceof Error ? error.name : typeof error}).`);
  };
}

/** The resolver or measured method that had at least half of the samples; null: none had. */
function findScope(samples: readonly Sample[]): RequestState | null {
  const counts = new Map<RequestState | null, number>();
  for (const { scope = null } of samples) counts.set(scope, (counts.get(scope) ?? 0) + 1);
  const most = [...counts].find(([, count]) => 2 * count >= samples.length);
  return most?.[0] ?? null;
}

const isDebuggable = (): boolean =>
  process.features.inspector && process.getBuiltinModule('node:inspector').url() !== undefined;

function readAddress(server: Server | null): string | null {
  const address = server?.address() ?? null;
  return address === null || typeof address === 'string' ? null : formatAddress(address.address, address.port);
}

/** The folder of this library's files; null where a bundler has put them into the application's own file. */
function findOwnFolder(): string | null {
  const file = captureFrames().frames[0]?.file ?? '';
  // In the published package, a file that scripts/build.mjs names.
  const folder = /^(.*[/\\])(?:event-loop[/\\]event-loop|shared[/\\]nestjs-perf\.[\w.-]+)\.[cm]?[jt]s$/.exec(file);
  return folder?.[1] ?? null;
}
