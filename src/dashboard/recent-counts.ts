import { pushBounded } from '../core/push-bounded.js';
import { WINDOW } from './view.js';

interface Series {
  /** Cumulative, at the last sample. */
  readonly last: readonly number[];
  /** Of each sample, the newest last; of the first one after a gap, what the gap had. */
  readonly gains: { readonly sample: number; readonly counts: readonly number[] }[];
}

/** What cumulative counters have gained lately, by name. Whoever is not counted for a window is forgotten. */
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

  /** A new sample begins. `gapMs`: nothing is known of so long before it but what {@link count} is told; null goes on from the last one. */
  next(nowMs: number, gapMs: number | null): void {
    this.sample += 1;
    if (gapMs !== null) {
      this.series.clear();
      this.times = [nowMs - gapMs];
      this.firstSample = this.sample;
    }
    pushBounded(this.times, nowMs, WINDOW + 1);
    for (const [name, { gains }] of this.series)
      if (this.sample - gains.at(-1)!.sample > WINDOW) this.series.delete(name);
  }

  /** Once a sample and name; negative where a counter began anew, which counts as nothing. `before`: gained in the gap. */
  count(name: string, cumulative: readonly number[], before?: readonly number[]): void {
    const { last, gains } = this.series.get(name) ?? { last: null, gains: [] };
    const counts = cumulative.map((count, i) => (last === null ? (before?.[i] ?? 0) : Math.max(0, count - last[i]!)));
    pushBounded(gains, { sample: this.sample, counts }, WINDOW);
    this.series.set(name, { last: cumulative, gains });
  }

  /** What the counter at `index` has gained in each sample, the newest last; undefined when it was nothing. */
  gains(name: string, index: number): number[] | undefined {
    const gains = this.since(this.firstSample + 1, name, index);
    return gains.some((gain) => gain > 0) ? gains : undefined;
  }

  /** What it has gained in the whole window. */
  gained(name: string, index: number): number {
    return this.since(this.sample - WINDOW + 1, name, index).reduce((sum, gain) => sum + gain, 0);
  }

  private since(first: number, name: string, index: number): number[] {
    const gains = this.series.get(name)?.gains ?? [];
    return gains.filter(({ sample }) => sample >= first).map(({ counts }) => counts[index]!);
  }
}
