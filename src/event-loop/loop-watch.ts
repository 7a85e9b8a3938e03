import { performance } from 'node:perf_hooks';
import { type MonotonicClock, monotonicMs } from '../core/clock.js';
import { inRootContext } from '../core/root-context.js';
import { Beat, MODE, WORD } from './beat.js';
import { PARK_AFTER_MS, PARK_QUIET_AFTER_MS, type Timing } from './event-loop.options.js';
import { LoopStatistics } from './loop-statistics.js';

/** A time in which the loop did not turn, on the main thread's clock. */
export interface Block {
  /** True: no task alone was too long, but a queue of them has kept the loop busy. */
  readonly inPieces: boolean;
  /** The last beat before the block. The loop may have been idle for a part of the time since then. */
  readonly sinceMs: number;
  /** The end less the busy time, so the latest moment at which the block can have begun. */
  readonly startMs: number;
  readonly endMs: number;
  /** Share of it that the main thread was on a CPU; more than 1 where only the whole process's is known. */
  readonly cpuRatio: number;
  /** Milliseconds in which the machine ran neither thread. The sampler's thread counts them; complete some polls later. */
  readonly readLostMs: () => number;
}

/** Since the start of the process: how long the loop has waited for events, and the main thread was on a CPU. */
export interface LoopGauges {
  readonly nowMs: MonotonicClock;
  idleMs(): number;
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

/** Finds each block: a beat that comes late although the loop was not idle. Beats at requests, and by a timer: fast while requests arrive. */
export class LoopWatch {
  readonly beat: Beat;
  readonly statistics: LoopStatistics;
  private timer: NodeJS.Timeout | null = null;
  private awake = false;
  private lastRequestMs = 0;
  /** The last tick, with the counters as they were. */
  private ticked!: { ms: number; idleMs: number; cpuMs: number; lostUs: number };
  /** Up to here all is reported, or was below the threshold: the last tick, or the end of a block since. */
  private reported!: { ms: number; idleMs: number };
  /** False until the first request or tick: a long task of the boot is no block. */
  private begun = false;

  constructor(
    private readonly timing: Timing,
    private readonly gauges: LoopGauges,
    private readonly inFlight: () => number,
    private readonly onBlock: (block: Block) => void,
    private readonly onTick: () => void = () => {},
    private readonly onWake: () => void = () => {},
  ) {
    const nowMs = gauges.nowMs();
    this.beat = new Beat(nowMs);
    this.statistics = new LoopStatistics(nowMs);
    this.readCounters(nowMs);
  }

  start(): void {
    if (this.timer === null) this.tickEvery(this.timing.idleTickMs);
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
    this.begun = false;
  }

  turned(): void {
    if (this.begun) this.turn(this.gauges.nowMs());
  }

  requestStarted(nowMs: number): void {
    this.lastRequestMs = nowMs;
    if (!this.begun) this.begin(nowMs);
    else if (nowMs - this.beat.lastMs >= this.timing.beatMs || !this.awake) this.turn(nowMs);
    if (!this.awake) this.wake(nowMs);
  }

  requestEnded(nowMs: number): void {
    this.lastRequestMs = nowMs;
    if (nowMs - this.beat.lastMs >= this.timing.beatMs) this.turn(nowMs);
  }

  private turn(nowMs: number): void {
    const { lastMs } = this.beat;
    this.beat.at(nowMs);
    if (nowMs - lastMs >= this.timing.thresholdMs) this.reportBlock(lastMs, nowMs);
  }

  private begin(nowMs: number): void {
    this.begun = true;
    this.beat.at(nowMs);
    this.statistics.restart(nowMs);
    this.readCounters(nowMs);
  }

  private wake(nowMs: number): void {
    this.awake = true;
    this.readCounters(nowMs);
    this.tickEvery(this.timing.tickMs);
    Atomics.store(this.beat.words, WORD.mode, MODE.awake);
    this.onWake();
  }

  private park(): void {
    this.awake = false;
    Atomics.compareExchange(this.beat.words, WORD.mode, MODE.awake, MODE.parked);
    this.tickEvery(this.timing.idleTickMs);
  }

  private tickEvery(ms: number): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = inRootContext(() => setInterval(this.tick, ms).unref());
  }

  private readonly tick = (): void => {
    const nowMs = this.gauges.nowMs();
    if (!this.begun) return this.begin(nowMs);
    const intervalMs = this.awake ? this.timing.tickMs : this.timing.idleTickMs;
    this.turn(nowMs);
    this.statistics.delayed(nowMs, Math.max(0, nowMs - this.ticked.ms - intervalMs));
    this.reportPieces(nowMs, nowMs);
    this.readCounters(nowMs);
    this.onTick();
    const quietMs = nowMs - this.lastRequestMs;
    if (this.awake && quietMs > (this.inFlight() > 0 ? PARK_QUIET_AFTER_MS : PARK_AFTER_MS)) this.park();
  };

  private readCounters(ms: number): void {
    const { beat, gauges } = this;
    this.ticked = { ms, idleMs: gauges.idleMs(), cpuMs: gauges.cpuMs(), lostUs: beat.words[WORD.lostUs]! };
    this.reported = this.ticked;
  }

  private reportBlock(fromMs: number, toMs: number): void {
    // Idle time is known as of the last report. As much of it as fits may lie before `fromMs`: only the rest is taken off,
    // so the duration is an upper bound.
    const idleMs = Math.max(0, this.gauges.idleMs() - this.reported.idleMs - (fromMs - this.reported.ms));
    const durationMs = toMs - fromMs - idleMs;
    if (durationMs < this.timing.thresholdMs) return;
    this.reportPieces(toMs - durationMs, toMs);
    this.emit(false, fromMs, toMs - durationMs, toMs, toMs);
    this.reported = { ms: toMs, idleMs: this.gauges.idleMs() };
  }

  /** Reports a block in pieces: the loop was busy since the last report, as with many requests one behind the other. */
  private reportPieces(endMs: number, nowMs: number): void {
    const leastMs = this.timing.thresholdMs + (this.awake ? this.timing.tickMs : this.timing.idleTickMs);
    if (endMs - this.reported.ms < leastMs) return;
    const busyMs = endMs - this.reported.ms - (this.gauges.idleMs() - this.reported.idleMs);
    if (busyMs >= leastMs) this.emit(true, this.reported.ms, endMs - busyMs, endMs, nowMs);
  }

  private emit(inPieces: boolean, sinceMs: number, startMs: number, endMs: number, nowMs: number): void {
    const { ms, idleMs, cpuMs, lostUs } = this.ticked;
    const { words } = this.beat;
    const sinceTickMs = Math.max(1, nowMs - ms - (this.gauges.idleMs() - idleMs));
    this.statistics.blocked(nowMs, endMs - startMs);
    this.onBlock({
      inPieces,
      sinceMs,
      startMs,
      endMs,
      cpuRatio: (this.gauges.cpuMs() - cpuMs) / sinceTickMs,
      readLostMs: () => ((Atomics.load(words, WORD.lostUs) - lostUs) | 0) / 1_000,
    });
  }
}
