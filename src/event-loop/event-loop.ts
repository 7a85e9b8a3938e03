import { randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import type { ModulesContainer } from '@nestjs/core';
import { threadId } from 'node:worker_threads';
import { monotonicMs } from '../core/clock.js';
import type { Resolved } from '../core/option.js';
import type { Recorder } from '../core/recorder.js';
import { SecretNames } from '../core/redact.js';
import type { OncePerCause } from '../core/reporter.js';
import type { RequestState } from '../core/request-state.js';
import { inRootContext } from '../core/root-context.js';
import { ROUTE_BLOCKS } from '../core/route.js';
import type { SchedulingLoss, SchedulingPressure } from '../core/scheduling.js';
import type { EventLoopSnapshot } from '../core/snapshot.js';
import type { Around } from '../http/handler.interceptor.js';
import type { RequestLifecycle, RequestObserver } from '../http/lifecycle.js';
import { blockRecordOf, CarefulReader, locateIn, type RecordRules } from './block-record.js';
import { aloneIn, sharesWork, suspectAt } from './candidates.js';
import { classify, type Classification } from './classify.js';
import { timingOf, type eventLoopOption, type Timing } from './event-loop.options.js';
import { GcObserver } from './gc.js';
import { captureFrames, captureNames, Probe } from './interrupt/probe.js';
import { Naming } from './interrupt/naming.js';
import { LoopWatch, nodeGauges, type Block } from './loop-watch.js';
import { Mappings, SourceMaps, type Position } from './source-maps.js';
import { ProviderMethods } from './provider-methods.js';
import { PendingBlocks } from './pending-blocks.js';
import { installSafepoints } from './safepoints.js';
import { stacksObstacle } from './stack-check.js';
import { Watchdog } from './watchdog.js';
import { msInside, SocketQueue, waitedOf } from './waiting.js';
import type { Look } from './frame.js';

interface SeenBlock {
  readonly block: Block;
  readonly inFlight: readonly RequestState[];
  readonly queued: readonly RequestState[];
  readonly looks: readonly Look<RequestState>[];
  /** Who was the first to get on after the last look; null: nobody before the loop turned. */
  readonly firstOn: RequestState | null;
  readonly severalOn: boolean;
}

/** Nothing but the record waits for its lines, and to read the map of a bundle takes the thread some time the first time. */
const LOCATE_MS = 2_000;

/** Every block of the event loop over the threshold becomes a record that names the request and the line. */
export class EventLoop implements RequestObserver {
  /** Runs route functions so that a look at the stack can tell their request. */
  readonly naming: Naming;
  readonly pending: PendingBlocks<SeenBlock>;
  private readonly timing: Timing;
  private readonly watch: LoopWatch;
  private readonly gc = new GcObserver();
  private readonly reader: CarefulReader;
  private readonly queue: SocketQueue;
  private rules: RecordRules;
  /** Positions in the compiled code. */
  private readonly compiled = new SourceMaps(process.cwd(), 0, Mappings);
  private readonly id = randomBytes(4).toString('hex');
  private stacksTrusted = false;
  private probe: Probe | null = null;
  private watchdog: Watchdog | null = null;
  private watching = false;
  private restoreGlobals: (() => void) | null = null;
  private closed = false;
  /** A request whose end the loop is just hearing of: no longer in flight, but it was during the block. */
  private ending: RequestState | null = null;
  private readonly recording = new Set<Promise<void>>();

  constructor(
    private readonly options: NonNullable<Resolved<typeof eventLoopOption>>,
    private readonly lifecycle: RequestLifecycle,
    private readonly recorder: Recorder,
    private readonly report: OncePerCause,
    private readonly scheduling: SchedulingPressure | null,
  ) {
    const { thresholdMs, replay } = options;
    this.timing = timingOf(thresholdMs);
    this.watch = new LoopWatch(
      this.timing,
      nodeGauges,
      () => lifecycle.inFlight,
      (block) => this.blocked(block),
      () => this.turned(),
    );
    this.naming = new Naming(`perf:${this.id}:`, this.watch.beat.words);
    this.reader = new CarefulReader(report);
    this.queue = new SocketQueue(this.reader);
    this.pending = new PendingBlocks(
      monotonicMs,
      () => (this.watchdog?.running === true ? this.watch.polls : null),
      (block) => this.judge(block),
      (error) => this.reader.failed('a classification', error),
    );
    const secrets = new SecretNames(replay?.denyNames ?? []);
    this.rules = { secrets, replay, ownFolder: ownFolder(), reader: this.reader, methods: null };
  }

  /** Before routes are registered. No thread yet: an application that serves nothing pays nothing. */
  install(server: Server | null = null, modules: ModulesContainer | null = null): void {
    if (modules !== null) this.rules = { ...this.rules, methods: new ProviderMethods(modules) };
    if (this.options.safepoints) this.restoreGlobals = installSafepoints();
    this.lifecycle.observe(this);
    // Not as late as the first request, which may block; servers of the application's own, and `inject()`, start it with that.
    server?.once('listening', this.startWatching);
  }

  readonly around: Around = (state, _request, proceed) =>
    state === null ? proceed() : this.naming.runHandler(state, proceed);

  start(): void {
    this.watch.start();
  }

  started(state: RequestState): void {
    if (this.closed) return;
    this.startWatching();
    this.watch.requestStarted(state.startedMs);
    this.queue.started(state);
  }

  ended(state: RequestState): void {
    if (this.closed || state.within !== null) return;
    this.ending = state;
    this.watch.requestEnded(state.endedMs);
    this.ending = null;
  }

  /** The request whose code calls this, where the context store does not tell. Costs some microseconds. */
  currentRequest(below: Function): RequestState | null {
    return this.naming.current ?? this.naming.named(captureNames(below));
  }

  snapshot(): EventLoopSnapshot {
    return this.watch.statistics.snapshot(monotonicMs());
  }

  /** Resolves when every block so far is judged and recorded. */
  async settled(): Promise<void> {
    // The block that the caller has in mind may still wait for the beat that ends it.
    this.watch.turned();
    await this.pending.settled();
    await Promise.all(this.recording);
  }

  /** Judges what is pending and leaves no timer, hook or global behind; the watchdog ends by itself. */
  async close(): Promise<void> {
    this.watch.stop();
    this.closed = true;
    this.watchdog?.stop();
    this.pending.close();
    await Promise.all(this.recording);
    this.watchdog = null;
    this.probe?.close();
    this.gc.stop();
    this.restoreGlobals?.();
  }

  private readonly startWatching = (): void => {
    if (this.watching || this.closed) return;
    this.watching = true;
    this.watch.statistics.restart(monotonicMs());
    inRootContext(() => {
      this.gc.start();
      const { words } = this.watch.beat;
      const probeName = `nestjs-perf:probe:${threadId}:${this.id}`;
      const watchdog = new Watchdog(words, this.timing, probeName, this.report);
      watchdog.start();
      if (!watchdog.running) return;
      this.watchdog = watchdog;
      this.probe = new Probe(probeName, words, this.naming, this.lifecycle);
      void this.checkStacks();
    });
  };

  private async checkStacks(): Promise<void> {
    const obstacle = await stacksObstacle();
    this.stacksTrusted = obstacle === null;
    const cause = 'event-loop blocks have a suspect at most, no culprit';
    if (obstacle !== null) this.report.report(cause, `${cause}: ${obstacle}.`);
  }

  private blocked(block: Block): void {
    const inFlight = this.lifecycle.states().filter(({ startedMs }) => startedMs < block.endMs);
    const { ending } = this;
    if (ending !== null && ending.startedMs < block.endMs && !inFlight.includes(ending)) inFlight.push(ending);
    const { firstOn, severalOn } = this.naming;
    const looks = this.probe?.samplesOf(block.seq) ?? [];
    this.turned();
    const queued = this.queue.openAfter(inFlight);
    this.pending.add({ block, looks, inFlight, firstOn: firstOn ?? ending, severalOn, queued });
  }

  private turned(): void {
    this.naming.turned();
    this.probe?.turned();
  }

  private judge(seen: SeenBlock): void {
    const { block, looks, inFlight, firstOn, severalOn, queued } = seen;
    const { startMs, endMs, cpuRatio } = block;
    const gcMs = this.gc.within(startMs, endMs);
    const { shown, ...judged } = classify<RequestState>({
      startMs,
      endMs,
      inPieces: block.seq < 0,
      looks,
      gcMs,
      cpuRatio,
      ...block.lost(),
      throttled: wasThrottled(this.scheduling?.since(startMs) ?? null),
      thresholdMs: this.options.thresholdMs,
      debugged: debuggerAttached(),
      stacksTrusted: this.stacksTrusted,
      endedBefore: (state, ms) => state.endedMs > 0 && state.endedMs < ms,
      suspectAt: (look) => suspectAt(look, inFlight, startMs, firstOn),
      sharesWork: (look) => severalOn || sharesWork(look, inFlight),
      firstOn,
      alone: aloneIn(inFlight, startMs),
    });
    const classification = { ...judged, shown: this.options.stack ? shown : [] };
    const waited = waitedOf(inFlight, classification);
    this.charge(block, classification.culprit, waited);
    const recorded = this.record(block, classification, gcMs, [...waited, ...queued]);
    this.recording.add(recorded);
    void recorded.finally(() => this.recording.delete(recorded));
  }

  /** Adds the block to what its culprit has blocked and to what the others had to wait. */
  private charge(block: Block, culprit: RequestState | null, waited: readonly RequestState[]): void {
    for (const state of waited) state.delayedMs += msInside(block, state);
    if (culprit === null) return;
    const ms = msInside(block, culprit);
    culprit.blockedMs += ms;
    const route = this.reader.read('the route', () => culprit.route, null);
    if (route !== null) ROUTE_BLOCKS.get(route)?.blocked(ms);
  }

  private async record(
    block: Block,
    classification: Classification<RequestState>,
    gcMs: number,
    delayed: readonly RequestState[],
  ): Promise<void> {
    try {
      const ask = async (positions: readonly Position[]) => this.watchdog?.locate(positions, LOCATE_MS) ?? null;
      const locate = await locateIn(classification, ask, (position) => this.compiled.locationOf(position));
      this.recorder.push(blockRecordOf(block, classification, gcMs, delayed, locate, this.rules));
    } catch (error) {
      this.reader.failed('a record', error);
    }
  }
}

/** Counted from up to some seconds before the block, so it supports other evidence and is none by itself. */
function wasThrottled(loss: SchedulingLoss | null): boolean {
  return loss !== null && ((loss.throttledPeriods ?? 0) > 0 || (loss.throttledMs ?? 0) > 0);
}

/** A paused program looks blocked. */
function debuggerAttached(): boolean {
  if (!process.features.inspector) return false;
  return process.getBuiltinModule('node:inspector').url() !== undefined;
}

/** The folder of this library's files; null where a bundler has put them into the application's own file. */
function ownFolder(): string | null {
  const file = captureFrames()[0]?.file ?? '';
  // In the published package, a file that scripts/build.mjs names.
  const folder = /^(.*[/\\])(?:event-loop[/\\]event-loop|shared[/\\]nestjs-perf\.[\w.-]+)\.[cm]?[jt]s$/.exec(file);
  return folder?.[1] ?? null;
}
