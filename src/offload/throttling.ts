import type { MonotonicClock } from '../core/clock.js';
import type { CpuAllowance } from '../core/cpu-allowance.js';

/** The kernel gives and takes CPU in periods of this length: looking more often tells nothing. */
const PERIOD_MS = 100;

/** How long the container's limit held the process back while calls were running. */
export class Throttling {
  private totalMs = 0;
  private since: number | null = null;
  private last: { atMs: number; value: number | null } | null = null;

  constructor(
    private readonly allowance: CpuAllowance | null,
    private readonly nowMs: MonotonicClock,
  ) {}

  /** The first of some calls begins. */
  begin(): void {
    this.since = this.counter();
  }

  /** The last of them has ended. */
  end(): void {
    this.totalMs = this.total();
    this.since = null;
  }

  /** 0 where no limit is seen. */
  total(): number {
    if (this.since === null) return this.totalMs;
    return this.totalMs + Math.max(0, (this.counter() ?? this.since) - this.since);
  }

  private counter(): number | null {
    const atMs = this.nowMs();
    if (this.last === null || atMs - this.last.atMs >= PERIOD_MS) {
      this.last = { atMs, value: this.allowance?.throttledMs() ?? null };
    }
    return this.last.value;
  }
}
