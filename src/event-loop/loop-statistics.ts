import { performance, type EventLoopUtilization } from 'node:perf_hooks';
import { Histogram } from '../core/histogram.js';
import type { EventLoopSnapshot } from '../core/snapshot.js';

/** Snapshots tell of the last one to two of these. */
export const WINDOW_MS = 5_000;

/** Utilisation and delay of the last window, kept in two halves so that old times are forgotten. */
export class LoopStatistics {
  private current = new Histogram();
  private previous = new Histogram();
  private currentSinceMs: number;
  private currentUtilization: EventLoopUtilization;
  private previousUtilization: EventLoopUtilization;
  private blocks = 0;
  private blockedMs = 0;

  constructor(
    nowMs: number,
    private readonly utilization: typeof performance.eventLoopUtilization = performance.eventLoopUtilization,
  ) {
    this.currentSinceMs = nowMs;
    this.currentUtilization = this.previousUtilization = utilization();
  }

  /** A tick came `delayMs` later than it was due. */
  delayed(nowMs: number, delayMs: number): void {
    if (nowMs - this.currentSinceMs >= WINDOW_MS) this.turn(nowMs);
    this.current.record(delayMs);
  }

  blocked(ms: number): void {
    this.blocks += 1;
    this.blockedMs += ms;
  }

  snapshot(nowMs: number): EventLoopSnapshot {
    if (nowMs - this.currentSinceMs >= WINDOW_MS) this.turn(nowMs);
    const window = new Histogram();
    window.merge(this.previous);
    window.merge(this.current);
    return {
      utilization: this.utilization(this.utilization(), this.previousUtilization).utilization,
      delayMs: { p50: window.quantileMs(0.5), p99: window.quantileMs(0.99), max: window.maxMs },
      blocks: this.blocks,
      blockedMs: this.blockedMs,
    };
  }

  private turn(nowMs: number): void {
    this.previous = this.current;
    this.current = new Histogram();
    this.previousUtilization = this.currentUtilization;
    this.currentUtilization = this.utilization();
    this.currentSinceMs = nowMs;
  }
}
