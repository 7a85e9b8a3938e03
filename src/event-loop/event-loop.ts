import { randomBytes } from 'node:crypto';
import { threadId } from 'node:worker_threads';
import type { Recorder } from '../core/recorder.js';
import type { RecordHold } from '../core/record-hold.js';
import type { OncePerCause } from '../core/reporter.js';
import type { RequestState } from '../core/request-state.js';
import type { Resolved } from '../core/option.js';
import type { SchedulingLoss, SchedulingPressure } from '../core/scheduling.js';
import type { EventLoopSnapshot } from '../core/snapshot.js';
import type { Around } from '../http/around.js';
import type { ControllerHandlers } from '../http/controller-handlers.js';
import type { HandlerRunner } from '../http/http-installation.js';
import type { PacedObserver, RequestLifecycle } from '../http/request-lifecycle.js';
import { blockRecordOf, type RecordRules } from './block-record.js';
import { classify, type Verdict } from './classify.js';
import type { eventLoopOption } from './event-loop.options.js';
import { GcObserver } from './interrupt/gc-observer.js';
import { StoreIdentity } from './interrupt/identity.js';
import { LoopWatch, nodeGauges, type LoopGauges, type Standstill } from './loop-watch.js';
import { Mappings } from './mappings.js';
import { promisesAreHooked } from './promise-hooks.js';
import { PendingBlocks, type PendingBlock } from './pending-blocks.js';
import { captureFrames, Probe, type Sample } from './interrupt/probe.js';
import { installSafepoints } from './safepoints.js';
import { SecretNames } from './replay/secret-names.js';
import { Slots } from './interrupt/slots.js';
import { MAX_MAP_BYTES, SourceMaps } from './source-maps.js';
import { timingOf } from './timing.js';
import { Watchdog, watchdogObstacle } from './watchdog.js';

interface Block extends PendingBlock {
  readonly samples: readonly Sample[];
}

/** Before, Node makes accessors with deprecation warnings for each entry. */
const NODE_WITH_CHEAP_GC_ENTRIES = 26;
/** Turns of the loop after a standstill in which requests arrive that had been waiting: accept, then read. */
const TURNS_OF_QUEUED = 3;

/** Every standstill of the event loop over the threshold becomes a record that names the request and the line. */
export class EventLoop implements PacedObserver {
  dueMs = 0;
  /** Who waits for verdicts. */
  readonly hold: RecordHold;
  private readonly slots: Slots;
  private readonly watch: LoopWatch;
  private readonly pending: PendingBlocks<Block>;
  private readonly gc: GcObserver;
  private readonly rules: RecordRules;
  private readonly channelName: string;
  private probe: Probe | null = null;
  private watchdog: Watchdog | null = null;
  private watching = false;
  private readonly obstacle = watchdogObstacle();
  private restoreGlobals: (() => void) | null = null;
  private contextEnabled = false;
  /** A request whose end the loop is just hearing of: no longer in flight, but it was during the standstill. */
  private ending: RequestState | null = null;
  private queueing: Block | null = null;
  /** The application asks for its requests itself: each then waits in a slot from the start. */
  private asked = false;

  constructor(
    private readonly options: NonNullable<Resolved<typeof eventLoopOption>>,
    private readonly lifecycle: RequestLifecycle,
    private readonly recorder: Recorder,
    private readonly report: OncePerCause,
    private readonly scheduling: SchedulingPressure | null,
    private readonly gauges: LoopGauges = nodeGauges,
  ) {
    const { thresholdMs, stack, replay } = options;
    const id = randomBytes(4).toString('hex');
    this.channelName = `nestjs-perf:probe:${threadId}:${id}`;
    this.slots = new Slots(`perf:${id}:`, lifecycle.eachInFlight);
    this.gc = new GcObserver(thresholdMs, parseInt(process.versions.node, 10) >= NODE_WITH_CHEAP_GC_ENTRIES);
    this.watch = new LoopWatch(
      timingOf(thresholdMs),
      gauges,
      () => lifecycle.inFlight,
      (standstill) => this.stoodStill(standstill),
      (nowMs) => this.ticked(nowMs),
    );
    this.pending = new PendingBlocks(
      gauges.nowMs,
      () => (this.watchdog?.running === true ? this.watch.polls : null),
      (block) => this.judge(block),
    );
    this.hold = this.pending;
    this.rules = {
      secrets: new SecretNames(replay?.denyNames ?? []),
      replay,
      sourceMaps: stack ? new SourceMaps(process.cwd(), MAX_MAP_BYTES, Mappings) : null,
      ownFolder: ownFolder(),
    };
  }

  /** Before routes are registered. No thread yet: an application that serves nothing pays nothing. */
  install(contextEnabled: boolean): void {
    this.contextEnabled = contextEnabled;
    if (this.options.safepoints) this.restoreGlobals = installSafepoints();
    this.lifecycle.observePaced(this);
  }

  /**
   * An asynchronous handler is awaited once more, right where it is called: Nest returns its promise from an async
   * function, which links the two one microtask late, and code after a first short await would be nobody's. Call last, so
   * that nothing stands between.
   */
  installOnHandlers(handlers: ControllerHandlers): void {
    const around: Around = (state, _request, proceed) =>
      state === null ? proceed() : this.slots.run(state, proceed, undefined, undefined, undefined, undefined, false);
    handlers.around(({ method }) => (isAsyncFunction(method) ? around : null));
  }

  /** The application has booted. */
  start(): void {
    this.watch.start();
    void this.learnHooks();
  }

  /** Runs route functions so that a look at the stack can tell their request. */
  get handlerRunner(): HandlerRunner {
    return this.slots;
  }

  started(state: RequestState): void {
    if (!this.watching) this.startWatching();
    this.watch.requestStarted(state.startedMs);
    if (this.queueing !== null) this.queueing.queued.push(state);
    this.pace();
  }

  ended(state: RequestState): void {
    const { endedMs, routeCall } = state;
    // Its route function goes on, but nobody finds it in flight any more.
    if (routeCall !== null && !routeCall.settled) this.slots.showRequest(state);
    const sinceMs = endedMs - this.watch.beat.lastMs;
    if (sinceMs <= 0) return;
    // Kept only where it can be asked for: it costs two writes that the garbage collector has to be told of.
    if (sinceMs >= this.options.thresholdMs) this.ending = state;
    this.watch.requestEnded(endedMs);
    if (this.ending !== null) this.ending = null;
    this.pace();
  }

  /** Until the next beat is due, no start or end tells anything; but after a block each start may be of one that has waited. */
  private pace(): void {
    this.dueMs = this.queueing === null ? this.watch.beatDueMs : 0;
  }

  /** The request whose code calls this, where the context store does not tell. Costs some microseconds. */
  currentRequest(): RequestState | null {
    this.asked = true;
    this.slots.waitOnDemand(false);
    return this.slots.of(captureFrames());
  }

  snapshot(): EventLoopSnapshot {
    return this.watch.statistics.snapshot(this.gauges.nowMs());
  }

  /** Resolves when every standstill so far is judged and recorded. */
  async settled(): Promise<void> {
    // The standstill that the caller has in mind may still wait for the beat that ends it.
    this.watch.beat.at(this.gauges.nowMs());
    await this.pending.settled();
  }

  /** Judges what is pending and leaves no thread, timer, hook or global behind. */
  async close(): Promise<void> {
    this.watch.stop();
    await this.watchdog?.stop();
    this.watchdog = null;
    this.pending.close();
    this.probe?.close();
    this.gc.stop();
    this.restoreGlobals?.();
    this.restoreGlobals = null;
  }

  private startWatching(): void {
    this.watching = true;
    this.watch.start();
    this.gc.start();
    this.gc.ticked(this.gauges.nowMs(), false);
    if (this.obstacle !== null) {
      const cause = 'event-loop blocks are measured, but not traced to requests';
      this.report.report(cause, `${cause}: ${this.obstacle}.`);
      return;
    }
    const identity = this.contextEnabled ? new StoreIdentity(this.slots, this.lifecycle) : this.slots;
    this.probe = new Probe(this.channelName, this.watch.beat.words, identity, this.gauges.nowMs);
    this.probe.onLook = (sample) => (sample.unobservedGcMs = this.gc.looked(sample.requestedMs, sample.servedMs));
    this.probe.onLate = (sample) => this.slots.onNextSettled((state) => (sample.settledNext = state));
    this.watchdog = new Watchdog(
      this.watch.beat.words,
      timingOf(this.options.thresholdMs),
      this.channelName,
      this.report,
    );
    this.watchdog.start();
  }

  private ticked(nowMs: number): void {
    this.gc.ticked(nowMs, this.looks());
    void this.learnHooks();
  }

  private async learnHooks(): Promise<void> {
    const hooked = await promisesAreHooked();
    this.slots.waitOnDemand(!hooked && !this.asked);
  }

  /** Whether the watchdog has booted, still runs, and would look at a standstill before it is over. */
  private looks(): boolean {
    return this.watch.armed && this.watchdog?.running === true && this.watch.polls !== 0;
  }

  private stoodStill(standstill: Standstill): void {
    this.gc.stoodStill(standstill.endMs);
    const inFlight: RequestState[] = [];
    for (const state of this.lifecycle.states()) if (state.startedMs < standstill.endMs) inFlight.push(state);
    if (this.ending !== null && this.ending.startedMs < standstill.endMs) inFlight.push(this.ending);
    this.slots.onNextSettled(null);
    const samples = this.probe?.samplesOf(standstill.seq) ?? [];
    const block: Block = { standstill, samples, inFlight, queued: [] };
    this.pending.add(block);
    this.queueing = block;
    this.dueMs = 0;
    this.afterTurns(TURNS_OF_QUEUED, block);
  }

  private afterTurns(turns: number, block: Block): void {
    setImmediate(() => {
      if (turns > 1) this.afterTurns(turns - 1, block);
      else if (this.queueing === block) this.queueing = null;
    });
  }

  private judge(block: Block): void {
    const { standstill, samples, inFlight, queued } = block;
    const { startMs, endMs } = standstill;
    const gcMs = this.gc.within(startMs, endMs);
    const { sinceMs: gcSinceMs } = this.gc;
    const counters = this.watch.counters();
    const verdict = classify({
      startMs,
      endMs,
      looks: samples,
      gcMs: this.gc.within(Math.max(startMs, gcSinceMs), endMs),
      gcSinceMs,
      cpuRatio: standstill.cpuRatio,
      starvedMs: ((counters.starvedUs - standstill.starvedUsBefore) | 0) / 1000,
      runDelayMs: ((counters.runDelayUs - standstill.runDelayUsBefore) | 0) / 1000,
      throttled: wasThrottled(this.scheduling?.since(startMs) ?? null),
      thresholdMs: this.options.thresholdMs,
      debugged: debuggerAttached(),
      endedBefore: (state, ms) => state.endedMs > 0 && state.endedMs < ms,
    });
    this.charge(block, verdict);
    const waited = [...inFlight, ...queued].filter((state) => state !== verdict.culprit && state !== verdict.suspect);
    this.recorder.push(blockRecordOf(standstill, verdict, gcMs, waited, this.rules));
  }

  /** Adds the block to what its culprit has blocked and to what the others had to wait. */
  private charge({ standstill, inFlight }: Block, { culprit, suspect }: Verdict<RequestState>): void {
    for (const state of inFlight) {
      const untilMs = state.endedMs > 0 ? Math.min(standstill.endMs, state.endedMs) : standstill.endMs;
      const ms = Math.max(0, untilMs - Math.max(standstill.startMs, state.startedMs));
      if (state === culprit) {
        state.blockedMs += ms;
        state.route?.latency?.blocked(ms);
      } else if (state !== suspect) state.delayedMs += ms;
    }
  }
}

const isAsyncFunction = (method: unknown): boolean =>
  Object.prototype.toString.call(method) === '[object AsyncFunction]';

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
  const folder = /^(.*[/\\])event-loop[/\\]event-loop\.[cm]?[jt]s$/.exec(file);
  return folder?.[1] ?? null;
}
