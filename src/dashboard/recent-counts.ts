import { pushBounded } from '../core/push-bounded.js';
import { WINDOW } from './view.js';

interface Series {
  /** Cumulative, at the last sample. */
  last: readonly number[];
  sample: number;
  /** Gained in the gap before the first sample. */
  readonly before: readonly number[];
  /** Gains of each sample since, the newest last. */
  readonly gains: (readonly number[])[];
  /** Sums of all gains, since they are read for each route and sample. */
  readonly sums: number[];
}

/** Gains of cumulative counters lately, by name. A name that is not counted for a window is forgotten. */
export class RecentCounts {
  private readonly series = new Map<string, Series>();
  private times: number[] = [];
  private sample = 0;
  /** The first sample after a gap. */
  private firstSample = 0;

  /** How long the window is, milliseconds. */
  get spanMs(): number {
    return (this.times.at(-1) ?? 0) - (this.times[0] ?? 0);
  }

  /** A new sample begins. `gapMs`: nothing is known of so long before it but what {@link count} is given; null goes on from the last one. */
  next(nowMs: number, gapMs: number | null): void {
    this.sample += 1;
    if (gapMs !== null) {
      this.series.clear();
      this.times = [nowMs - gapMs];
      this.firstSample = this.sample;
    }
    pushBounded(this.times, nowMs, WINDOW + 1);
    for (const [name, { sample }] of this.series) if (this.sample - sample > WINDOW) this.series.delete(name);
  }

  /** Once a sample and name; negative where a counter began anew, which counts as nothing. `before`: gained in the gap. */
  count(name: string, cumulative: readonly number[], before: readonly number[] = []): void {
    const { sample } = this;
    const known = this.series.get(name);
    if (known === undefined) {
      this.series.set(name, { last: cumulative, sample, before, gains: [], sums: cumulative.map(() => 0) });
      return;
    }
    const { last, gains, sums } = known;
    const left = gains.length === WINDOW ? gains.shift() : undefined;
    gains.push(cumulative.map((count, i) => Math.max(0, count - last[i]!)));
    for (const [i, gain] of gains.at(-1)!.entries()) sums[i]! += gain - (left?.[i] ?? 0);
    Object.assign(known, { last: cumulative, sample });
  }

  /** Gains of the counter at `index` in each sample, the newest last; undefined when it was nothing. */
  gains(name: string, index: number): number[] | undefined {
    const known = this.series.get(name);
    return known?.sums[index] ? known.gains.map((counts) => counts[index]!) : undefined;
  }

  /** Its gain in the whole window. */
  gained(name: string, index: number): number {
    const known = this.series.get(name);
    const isBeforeIn = this.sample - this.firstSample < WINDOW;
    return (known?.sums[index] ?? 0) + (isBeforeIn ? (known?.before[index] ?? 0) : 0);
  }
}
