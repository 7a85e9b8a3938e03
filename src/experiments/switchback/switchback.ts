import type { ResourceSample } from '../../core/record.js';
import type { SliceTotals } from '../totals/experiment-totals.js';
import { SliceTally } from './slice-tally.js';

/** How one process alternates a gate. */
export interface SwitchbackPlan {
  readonly gate: string;
  readonly sliceMs: number;
  readonly washoutMs: number;
}

/** Slices that are kept: the oldest pair makes room for the newest. */
const MAX_SLICES = 1_000;

/**
 * Alternates a gate by time slices, so that one process can compare what cannot be split by request. Slices come in pairs of
 * one `on` and one `off` in random order, against trends and against anything that has a rhythm; the first `washoutMs` of each
 * are not counted.
 */
export class Switchback {
  /** The variant of now. */
  on = false;
  /** The slice to count for; null during the wash-out, and when stopped. */
  current: SliceTally | null = null;
  private readonly closed: SliceTally[] = [];
  private timer: NodeJS.Timeout | null = null;
  private pairs = 0;
  private second: boolean | null = null;

  constructor(
    private readonly plan: SwitchbackPlan,
    /** Distinguishes the pairs of this process from those of others. */
    private readonly source: string,
    private readonly sampleResources: () => Pick<ResourceSample, 'process'>,
    private readonly random: () => number = Math.random,
  ) {}

  get gate(): string {
    return this.plan.gate;
  }

  start(): void {
    this.begin();
  }

  stop(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.current = null;
  }

  /** The slices that have ended. */
  totals(): SliceTotals[] {
    return this.closed.map((slice) => slice.totals());
  }

  private begin(): void {
    this.current = null;
    if (this.second === null) {
      this.pairs += 1;
      this.on = this.random() < 0.5;
      this.second = !this.on;
    } else {
      this.on = this.second;
      this.second = null;
    }
    this.after(this.plan.washoutMs, () => this.open());
  }

  private open(): void {
    this.current = new SliceTally(this.gate, `${this.source}:${this.pairs}`, this.on, this.sampleResources());
    this.after(this.plan.sliceMs - this.plan.washoutMs, () => this.end());
  }

  private end(): void {
    if (this.current !== null) {
      this.current.close(this.sampleResources());
      this.closed.push(this.current);
      if (this.closed.length > MAX_SLICES) this.closed.splice(0, 2);
    }
    this.begin();
  }

  private after(ms: number, step: () => void): void {
    this.timer = setTimeout(step, ms).unref();
  }
}
