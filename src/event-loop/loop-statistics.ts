import { performance } from 'node:perf_hooks';
import { percent } from '../core/figures.js';
import { Histogram } from '../core/histogram.js';
import type { EventLoopSnapshot } from '../core/snapshot.js';
import type { HealthReason } from '../ports/overview.js';

/** A snapshot covers the last one to two halves: 5 to 10 s. */
const HALF_MS = 5_000;
/** The utilization is over at least this time: right after the start there would be nothing but work. */
const SHORTEST_MS = 1_000;

/** A loop that was busier than this had no rest: one long block in a window is less. */
const BUSY = 0.95;
const LATE_MS = 500;

/** Reasons for a degraded health. */
export function findLoopReasons({ utilization, delayMs }: EventLoopSnapshot): HealthReason[] {
  const reasons: string[] = [];
  if (utilization > BUSY) reasons.push(`event loop: ${percent(utilization)} busy`);
  if (delayMs.p99 > LATE_MS)
    reasons.push(`event loop: p99 delay ${delayMs.p99.toFixed(0)} ms, for which requests wait before Node reads them`);
  return reasons.map((text) => ({ about: 'event-loop', text }));
}

class Half {
  readonly delay = new Histogram();
  blocks = 0;
  blockedMs = 0;
  readonly utilization = performance.eventLoopUtilization();
}

/** Utilisation, delay and blocks of the last window, kept in two halves so that old times are forgotten. */
export class LoopStatistics {
  private current!: Half;
  private previous!: Half;
  private currentSinceMs!: number;

  constructor(nowMs: number) {
    this.restart(nowMs);
  }

  restart(nowMs: number): void {
    this.currentSinceMs = nowMs;
    this.current = this.previous = new Half();
  }

  delayed(nowMs: number, delayMs: number): void {
    this.turn(nowMs);
    this.current.delay.record(delayMs);
  }

  blocked(nowMs: number, ms: number): void {
    this.turn(nowMs);
    this.current.blocks += 1;
    this.current.blockedMs += ms;
  }

  snapshot(nowMs: number): EventLoopSnapshot {
    this.turn(nowMs);
    const halves = this.previous === this.current ? [this.current] : [this.previous, this.current];
    const delay = new Histogram();
    let [blocks, blockedMs] = [0, 0];
    for (const half of halves) {
      delay.merge(half.delay);
      blocks += half.blocks;
      blockedMs += half.blockedMs;
    }
    const { active, idle } = performance.eventLoopUtilization(this.previous.utilization);
    return {
      utilization: active / Math.max(active + idle, SHORTEST_MS),
      delayMs: { p50: delay.quantileMs(0.5), p99: delay.quantileMs(0.99), max: delay.maxMs },
      blocks,
      blockedMs,
    };
  }

  private turn(nowMs: number): void {
    if (nowMs - this.currentSinceMs < HALF_MS) return;
    this.previous = this.current;
    this.current = new Half();
    this.currentSinceMs = nowMs;
  }
}
