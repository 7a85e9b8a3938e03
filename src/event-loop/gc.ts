import { PerformanceObserver } from 'node:perf_hooks';
import { pushBounded } from '../core/push-bounded.js';

const MIN_MS = 1;
const KEPT = 256;

/** Remembers the last garbage collections. Entries come in a later turn of the loop. */
export class GcObserver {
  private readonly kept: { startMs: number; endMs: number }[] = [];
  private readonly observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) this.add(startTime, duration);
  });

  start(): void {
    this.observer.observe({ entryTypes: ['gc'] });
  }

  stop(): void {
    this.observer.disconnect();
  }

  add(startMs: number, durationMs: number): void {
    if (durationMs < MIN_MS) return;
    pushBounded(this.kept, { startMs, endMs: startMs + durationMs }, KEPT);
  }

  within(fromMs: number, toMs: number): number {
    let sum = 0;
    for (const { startMs, endMs } of this.kept) sum += Math.max(0, Math.min(toMs, endMs) - Math.max(fromMs, startMs));
    return Math.min(sum, toMs - fromMs);
  }
}
