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
    this.totalMs = this.total() ?? 0;
    this.since = null;
  }

  /** Null where the kernel does not tell. */
  total(): number | null {
    const counter = this.counter();
    if (counter === null) return null;
    return this.since === null ? this.totalMs : this.totalMs + Math.max(0, counter - this.since);
  }

  private counter(): number | null {
    const atMs = this.nowMs();
    if (this.last === null || atMs - this.last.atMs >= PERIOD_MS) {
      this.last = { atMs, value: this.allowance?.throttledMs() ?? null };
    }
    return this.last.value;
  }
}
