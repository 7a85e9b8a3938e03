import type { CpuAllowance } from '../ports/cpu-allowance.js';

/** Calls within this time of each other are one run, milliseconds: the kernel's counters are read once a second. */
const LINGER_MS = 1_000;

/** How long the container's limit held the process back while calls were running. */
export class Throttling {
  private totalMs = 0;
  /** The kernel's count at the start of the run; null between two runs. */
  private run: { readonly fromMs: number | null } | null = null;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly allowance: CpuAllowance | null) {}

  /** The first of some calls begins. */
  begin(): void {
    clearTimeout(this.timer);
    this.run ??= { fromMs: this.countedMs() };
  }

  /** The last of them has ended. */
  end(): void {
    this.timer = setTimeout(() => this.endRun(), LINGER_MS).unref();
  }

  /** Leaves no timer. */
  close(): void {
    clearTimeout(this.timer);
    this.endRun();
  }

  /** 0 where no limit is seen. */
  total(): number {
    const fromMs = this.run?.fromMs ?? null;
    return fromMs === null ? this.totalMs : this.totalMs + Math.max(0, (this.countedMs() ?? fromMs) - fromMs);
  }

  private endRun(): void {
    this.totalMs = this.total();
    this.run = null;
  }

  private countedMs(): number | null {
    return this.allowance?.throttledMs() ?? null;
  }
}
