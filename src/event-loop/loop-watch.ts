import { performance } from 'node:perf_hooks';
import { type MonotonicClock, monotonicMs } from '../core/clock.js';
import { inRootContext } from '../core/root-context.js';
import { AWAKE, BEAT_AT, MODE, PARKED, POLLS, RUN_DELAY_US, SEQ, STARVED_US, UNITS_PER_MS, WORDS } from './beat.js';
import { PARK_AFTER_MS, PARK_QUIET_AFTER_MS, type Timing } from './event-loop.options.js';
import { LoopStatistics } from './loop-statistics.js';

/** Proves that the event loop turns, by a counter in shared memory: who reads it may see it late, never wrong. */
export class Beat {
  readonly words = new Int32Array(new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT));
  lastMs = 0;

  constructor(
    private readonly thresholdMs: number,
    nowMs: number,
    /** Called when two beats lay further apart than the threshold. `seq` is the number that the loop had meanwhile. */
    private readonly onLate: (seq: number, fromMs: number, toMs: number) => void,
  ) {
    this.restart(nowMs);
  }

  /** The loop turned at `nowMs` (monotonic). Never throws as long as its listener does not. */
  at(nowMs: number): void {
    const { lastMs } = this;
    const seq = this.words[SEQ]!;
    this.restart(nowMs);
    if (nowMs - lastMs >= this.thresholdMs) this.onLate(seq, lastMs, nowMs);
  }

  /** The same; what was before is nobody's business. */
  restart(nowMs: number): void {
    const { words } = this;
    words[SEQ] = words[SEQ]! + 1;
    words[BEAT_AT] = nowMs * UNITS_PER_MS;
    this.lastMs = nowMs;
  }
}

/** One time the event loop did not come round for longer than the threshold. */
export interface Block {
  /** The loop's number during it; looks of the watchdog carry it too. -1: no part of it was long, all together were. */
  readonly seq: number;
  readonly startMs: number;
  readonly endMs: number;
  /** Share of it that the main thread was on a CPU; more than 1 where only the whole process's is known. */
  readonly cpuRatio: number;
  /** The watchdog's polls when it ended. */
  readonly polls: number;
  /** What it has suffered, as far as the watchdog has told: ask some polls later. */
  lost(): { starvedMs: number; runDelayMs: number };
}

export interface LoopGauges {
  readonly nowMs: MonotonicClock;
  /** Milliseconds the loop has waited for events since the start. */
  idleMs(): number;
  /** CPU milliseconds of the main thread, or of the process where Node cannot tell (before 22.19). */
  cpuMs(): number;
}

export const nodeGauges: LoopGauges = {
  nowMs: monotonicMs,
  idleMs: () => performance.nodeTiming.idleTime,
  cpuMs: () => {
    const { user, system } = threadCpuUsage?.() ?? process.cpuUsage();
    return (user + system) / 1000;
  },
};
const { threadCpuUsage } = process as { threadCpuUsage?: () => NodeJS.CpuUsage };

/** Sees each block of the event loop from the inside. Ticks fast while requests are in flight, slowly otherwise. */
export class LoopWatch {
  readonly beat: Beat;
  readonly statistics: LoopStatistics;
  private timer: NodeJS.Timeout | null = null;
  /** There are requests: the tick is fast, and the watchdog awake. */
  private awake = false;
  private lastRequestMs = 0;
  /** The last tick, with the counters as they were. */
  private ticked!: { ms: number; idleMs: number; cpuMs: number; starvedUs: number; runDelayUs: number };
  /** Up to here all is reported, or was below the threshold: the last tick, or the end of a block since. */
  private told!: { ms: number; idleMs: number };
  /** The application's boot is over. */
  private begun = false;

  constructor(
    private readonly timing: Timing,
    private readonly gauges: LoopGauges,
    private readonly inFlight: () => number,
    private readonly onBlock: (block: Block) => void,
    /** At every tick, when the blocks before it are told. */
    private readonly onTick: () => void = () => {},
  ) {
    const nowMs = gauges.nowMs();
    this.beat = new Beat(timing.thresholdMs, nowMs, (seq, fromMs, toMs) => this.late(seq, fromMs, toMs));
    this.statistics = new LoopStatistics(nowMs);
    this.baseline(nowMs);
  }

  /** Starts the slow tick. What the loop does before its first tick or request (the application's boot) is nobody's block. */
  start(): void {
    if (this.timer === null) this.tickEvery(this.timing.idleTickMs);
  }

  stop(): void {
    this.clearTimer();
    this.begun = false;
  }

  /** The loop turns now, as far as this can tell: ends a block that has not been told yet. */
  turned(): void {
    if (this.begun) this.beat.at(this.gauges.nowMs());
  }

  /** A request has started: the loop turns, and ticks fast from now on. */
  requestStarted(nowMs: number): void {
    this.lastRequestMs = nowMs;
    if (!this.begun) this.begin(nowMs);
    else if (nowMs - this.beat.lastMs >= this.timing.beatMs || !this.awake) this.beat.at(nowMs);
    if (!this.awake) this.wake(nowMs);
  }

  requestEnded(nowMs: number): void {
    this.lastRequestMs = nowMs;
    if (nowMs - this.beat.lastMs >= this.timing.beatMs) this.beat.at(nowMs);
  }

  private begin(nowMs: number): void {
    this.begun = true;
    this.beat.restart(nowMs);
    this.statistics.restart(nowMs);
    this.baseline(nowMs);
  }

  private wake(nowMs: number): void {
    this.awake = true;
    this.baseline(nowMs);
    this.tickEvery(this.timing.tickMs);
    const { words } = this.beat;
    Atomics.store(words, MODE, AWAKE);
    Atomics.notify(words, MODE);
  }

  private park(): void {
    this.awake = false;
    Atomics.compareExchange(this.beat.words, MODE, AWAKE, PARKED);
    this.tickEvery(this.timing.idleTickMs);
  }

  private clearTimer(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }

  private tickEvery(ms: number): void {
    this.clearTimer();
    this.timer = inRootContext(() => setInterval(this.tick, ms).unref());
  }

  private readonly tick = (): void => {
    const nowMs = this.gauges.nowMs();
    if (!this.begun) return this.begin(nowMs);
    const intervalMs = this.awake ? this.timing.tickMs : this.timing.idleTickMs;
    this.beat.at(nowMs);
    this.statistics.delayed(nowMs, Math.max(0, nowMs - this.ticked.ms - intervalMs));
    this.lateInPieces(nowMs, nowMs);
    this.baseline(nowMs);
    this.onTick();
    const quietMs = nowMs - this.lastRequestMs;
    if (this.awake && quietMs > (this.inFlight() > 0 ? PARK_QUIET_AFTER_MS : PARK_AFTER_MS)) this.park();
  };

  private baseline(ms: number): void {
    const { beat, gauges } = this;
    const [starvedUs, runDelayUs] = [beat.words[STARVED_US]!, beat.words[RUN_DELAY_US]!];
    this.ticked = { ms, idleMs: gauges.idleMs(), cpuMs: gauges.cpuMs(), starvedUs, runDelayUs };
    this.told = this.ticked;
  }

  private late(seq: number, fromMs: number, toMs: number): void {
    // The loop may have waited for events between the last tick and the beat before; only what it waited beyond that time
    // must have been in between. The duration is an upper bound.
    const idleMs = Math.max(0, this.gauges.idleMs() - this.told.idleMs - (fromMs - this.told.ms));
    const durationMs = toMs - fromMs - idleMs;
    if (durationMs < this.timing.thresholdMs) return;
    this.lateInPieces(toMs - durationMs, toMs);
    this.emit(seq, toMs - durationMs, toMs, toMs);
    this.told = { ms: toMs, idleMs: this.gauges.idleMs() };
  }

  /** Many requests queued one behind the other. Told without what is told already, or time would be charged twice. */
  private lateInPieces(endMs: number, nowMs: number): void {
    const leastMs = this.timing.thresholdMs + (this.awake ? this.timing.tickMs : this.timing.idleTickMs);
    // In time, as nearly always: spares the question how long it was idle.
    if (endMs - this.told.ms < leastMs) return;
    const busyMs = endMs - this.told.ms - (this.gauges.idleMs() - this.told.idleMs);
    if (busyMs >= leastMs) this.emit(-1, endMs - busyMs, endMs, nowMs);
  }

  private emit(seq: number, startMs: number, endMs: number, nowMs: number): void {
    const { ms, idleMs, cpuMs, starvedUs, runDelayUs } = this.ticked;
    const sinceTickMs = Math.max(1, nowMs - ms - (this.gauges.idleMs() - idleMs));
    this.statistics.blocked(nowMs, endMs - startMs);
    this.onBlock({
      seq,
      startMs,
      endMs,
      cpuRatio: (this.gauges.cpuMs() - cpuMs) / sinceTickMs,
      polls: this.polls,
      lost: () => ({
        starvedMs: this.msSince(STARVED_US, starvedUs),
        runDelayMs: this.msSince(RUN_DELAY_US, runDelayUs),
      }),
    });
  }

  get polls(): number {
    return Atomics.load(this.beat.words, POLLS);
  }

  private msSince(word: number, beforeUs: number): number {
    return ((Atomics.load(this.beat.words, word) - beforeUs) | 0) / 1_000;
  }
}
