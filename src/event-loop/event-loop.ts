import type { Server } from 'node:http';
import type { ModulesContainer } from '@nestjs/core';
import { monotonicMs } from '../core/clock.js';
import type { Resolved } from '../core/option.js';
import type { Recorder } from '../core/recorder.js';
import { SecretNames } from '../core/secret-names.js';
import type { OncePerCause, Reporter } from '../core/reporter.js';
import type { RequestState } from '../request/request-state.js';
import { inRootContext } from '../core/root-context.js';
import type { SchedulingLoss, SchedulingPressure } from '../ports/scheduling.js';
import type { EventLoopSnapshot } from '../core/snapshot.js';
import type { RequestTracker } from '../request/tracker.js';
import { WORD } from './beat.js';
import { countVotes, measureInside } from './block.js';
import { CarefulReader, createBlockRecord, type JudgedBlock, type RecordRules } from './block-record.js';
import { findCause, type Verdict } from './cause.js';
import { timingOf, type eventLoopOption } from './event-loop.options.js';
import { GcObserver } from './gc.js';
import { captureFrames } from './interrupt/probe.js';
import { LoopWatch, nodeGauges, type Block } from './loop-watch.js';
import { PendingBlocks } from './pending-blocks.js';
import { ProviderMethods } from './provider-methods.js';
import { formatAddress } from './replay/curl.js';
import type { LoopProfile } from './profile/loop-profile.js';
import type { Sample } from './sample.js';
import { Sampler } from './sampler.js';
import { Witness } from './witness.js';

interface SeenBlock {
  readonly block: Block;
  readonly inFlight: readonly RequestState[];
  readonly samples: readonly Sample[];
}

/** Every block of the event loop over the threshold becomes a record that names the request and the line. */
export class EventLoop {
  readonly pending: PendingBlocks<SeenBlock>;
  readonly sampler: Sampler;
  /** Null without `port`. */
  readonly witness: Witness | null;
  private readonly watch: LoopWatch;
  private readonly gc = new GcObserver();
  private readonly reader: CarefulReader;
  private rules: RecordRules;
  private server: Server | null = null;
  private watching = false;
  private closed = false;
  /** A request whose end the loop is just learning: no longer in flight, but it was during the block. */
  private ending: RequestState | null = null;
  private readonly recording = new Set<Promise<void>>();

  constructor(
    private readonly options: NonNullable<Resolved<typeof eventLoopOption>>,
    private readonly lifecycle: RequestTracker,
    private readonly recorder: Recorder,
    report: OncePerCause,
    private readonly scheduling: SchedulingPressure | null,
    private readonly profile: LoopProfile | null = null,
    logger: Reporter | null = null,
  ) {
    const { thresholdMs, replay, stack, port, host, wedgedMs } = options;
    const timing = timingOf(thresholdMs);
    this.watch = new LoopWatch(
      timing,
      nodeGauges,
      () => lifecycle.inFlight,
      (block) => this.blocked(block),
      () => this.ticked(),
    );
    const { words } = this.watch.beat;
    this.witness =
      port === null || logger === null ? null : new Witness({ port, host, wedgedMs }, words, timing, logger, report);
    const methods = (): readonly string[] => this.rules.methods?.names() ?? [];
    const holders = this.witness === null ? null : { told: this.witness.told, methods };
    this.sampler = new Sampler(words, timing, lifecycle, stack, report, holders);
    if (profile !== null) this.sampler.onSample = (sample, ms) => profile.add(sample, ms);
    this.reader = new CarefulReader(report);
    this.pending = new PendingBlocks(
      monotonicMs,
      (block) => this.judge(block),
      (error) => this.reader.failed('a classification', error),
    );
    const secrets = new SecretNames(replay?.denyNames ?? []);
    const address = (): string | null => serverAddress(this.server);
    this.rules = { secrets, replay, ownFolder: ownFolder(), reader: this.reader, methods: null, stack, address };
  }

  /** Before routes are registered. No thread yet: an application that serves nothing pays nothing. */
  install(server: Server | null = null, modules: ModulesContainer | null = null): void {
    if (modules !== null) this.rules = { ...this.rules, methods: new ProviderMethods(modules) };
    this.server = server;
    // Not as late as the first request, which may block; servers of the application's own, and `inject()`, start it with that.
    server?.once('listening', this.startWatching);
  }

  start(): void {
    this.witness?.start();
    this.watch.start();
  }

  started(state: RequestState): void {
    if (this.closed) return;
    this.startWatching();
    this.watch.requestStarted(state.startedMs);
  }

  ended(state: RequestState): void {
    if (this.closed || state.within !== null) return;
    this.ending = state;
    this.watch.requestEnded(state.endedMs);
    this.ending = null;
    this.profile?.requestEnded(state);
  }

  /** Whether the sampler's thread has begun to look: a block before that is nobody's. */
  get isSampled(): boolean {
    return this.sampler.running && this.watch.beat.words[WORD.started] === 1;
  }

  snapshot(): EventLoopSnapshot {
    return this.watch.statistics.snapshot(monotonicMs());
  }

  /** Resolves when every block so far is judged and recorded. */
  async settled(): Promise<void> {
    // The caller's last block may still wait for the beat that ends it.
    this.watch.turned();
    await this.pending.settled();
    await Promise.all(this.recording);
  }

  /** Judges pending blocks and leaves no timer or global behind; the thread ends by itself. */
  async close(): Promise<void> {
    this.watch.stop();
    this.closed = true;
    this.sampler.stop();
    this.pending.close();
    await Promise.all(this.recording);
    await this.witness?.close();
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

  private ticked(): void {
    // Without a server nothing else starts it: jobs and consumers block as well.
    this.startWatching();
    this.watch.beat.words[WORD.debugged] = Number(isDebuggable());
    this.sampler.turned();
  }

  private blocked(block: Block): void {
    const { ending } = this;
    const inFlight = this.lifecycle.states().filter(({ startedMs }) => startedMs < block.endMs);
    if (ending !== null && ending.startedMs < block.endMs && !inFlight.includes(ending)) inFlight.push(ending);
    this.pending.add({ block, inFlight, samples: this.sampler.within(block.sinceMs, block.endMs) });
  }

  private judge({ block, inFlight, samples }: SeenBlock): void {
    const { startMs, endMs, cpuRatio, inPieces } = block;
    const gcMs = this.gc.within(startMs, endMs);
    const lostMs = block.readLostMs();
    const votes = countVotes(samples, block, lostMs);
    const verdict = findCause({
      startMs,
      endMs,
      cpuRatio,
      inPieces,
      votes,
      gcMs,
      lostMs,
      throttled: wasThrottled(this.scheduling?.since(startMs) ?? null),
      thresholdMs: this.options.thresholdMs,
      debugged: isDebuggable(),
    });
    if (verdict === null) return;
    const { request, othersWaited } = verdict;
    const hasWaited = (state: RequestState): boolean => (request === null ? !votes.ran.has(state) : state !== request);
    const delayed = othersWaited ? inFlight.filter(hasWaited) : [];
    this.charge(block, verdict, delayed);
    const recorded = this.record({ block, verdict, samples: samples.length, gcMs, delayed });
    this.recording.add(recorded);
    void recorded.finally(() => this.recording.delete(recorded));
  }

  /** Adds the block to the time that its request has blocked, and to the time that the others had to wait. */
  private charge(block: Block, { request }: Verdict, delayed: readonly RequestState[]): void {
    for (const state of delayed) state.delayedMs += measureInside(block, state);
    if (request === null) return;
    const ms = measureInside(block, request);
    request.blockedMs += ms;
    const route = this.reader.read('the route', () => request.route, null);
    route?.stats?.blocked(ms);
  }

  private async record(judged: JudgedBlock): Promise<void> {
    try {
      const shown = this.options.stack ? judged.verdict.shown : [];
      const locate = await this.sampler.locate(shown.flatMap(({ frames }) => frames));
      this.recorder.push(createBlockRecord(judged, locate, this.rules));
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
function isDebuggable(): boolean {
  if (!process.features.inspector) return false;
  return process.getBuiltinModule('node:inspector').url() !== undefined;
}

function serverAddress(server: Server | null): string | null {
  const address = server?.address() ?? null;
  return address === null || typeof address === 'string' ? null : formatAddress(address.address, address.port);
}

/** The folder of this library's files; null where a bundler has put them into the application's own file. */
function ownFolder(): string | null {
  const file = captureFrames().frames[0]?.file ?? '';
  // In the published package, a file that scripts/build.mjs names.
  const folder = /^(.*[/\\])(?:event-loop[/\\]event-loop|shared[/\\]nestjs-perf\.[\w.-]+)\.[cm]?[jt]s$/.exec(file);
  return folder?.[1] ?? null;
}
