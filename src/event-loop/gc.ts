import { PerformanceObserver } from 'node:perf_hooks';

/** Shorter collections cannot make a block. */
const MIN_MS = 1;
const KEPT = 256;

/** Remembers the last garbage collections. Entries come in a later turn, so ask one turn after the time in question. */
export class GcObserver {
  private readonly startMs = new Float64Array(KEPT);
  private readonly endMs = new Float64Array(KEPT);
  private count = 0;
  private observer: PerformanceObserver | null = null;

  start(): void {
    this.observer ??= new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries()) this.add(startTime, duration);
    });
    this.observer.observe({ entryTypes: ['gc'] });
  }

  stop(): void {
    this.observer?.disconnect();
    this.observer = null;
  }

  add(startMs: number, durationMs: number): void {
    if (durationMs < MIN_MS) return;
    const index = this.count % KEPT;
    this.startMs[index] = startMs;
    this.endMs[index] = startMs + durationMs;
    this.count += 1;
  }

  /** Milliseconds of collection between two monotonic times. */
  within(fromMs: number, toMs: number): number {
    let sum = 0;
    for (let i = 0; i < Math.min(this.count, KEPT); i++) {
      sum += Math.max(0, Math.min(toMs, this.endMs[i]!) - Math.max(fromMs, this.startMs[i]!));
    }
    return Math.min(sum, toMs - fromMs);
  }
}
