import { pushBounded } from './ring.js';

/** Samples that a window spans: at two seconds each, 80 s. */
export const WINDOW = 40;

interface Series {
  /** Cumulative, at the last sample. */
  last: readonly number[];
  /** What came between samples: a row a sample. */
  readonly deltas: (readonly number[])[];
  sample: number;
}

/** What cumulative counters have gained lately, by name. Whoever is not counted for a window is forgotten. */
export class RecentCounts {
  private readonly series = new Map<string, Series>();
  private times: number[] = [];
  private sample = 0;

  /** How long the window is, milliseconds. */
  get spanMs(): number {
    return (this.times.at(-1) ?? 0) - (this.times[0] ?? 0);
  }

  /** A new sample begins. After a gap nothing is known of the time in it. */
  next(at: number, afterGap: boolean): void {
    if (afterGap) {
      this.series.clear();
      this.times = [];
    }
    pushBounded(this.times, at, WINDOW + 1);
    this.sample += 1;
    for (const [name, { sample }] of this.series) if (this.sample - sample > WINDOW) this.series.delete(name);
  }

  /** Once a sample and name; negative where a counter began anew, which counts as nothing. */
  count(name: string, ...cumulative: readonly number[]): void {
    const known = this.series.get(name);
    if (known === undefined) {
      this.series.set(name, { last: cumulative, deltas: [], sample: this.sample });
      return;
    }
    const gained = cumulative.map((value, index) => Math.max(0, value - (known.last[index] ?? 0)));
    pushBounded(known.deltas, gained, WINDOW);
    known.last = cumulative;
    known.sample = this.sample;
  }

  /** What the counter at `index` has gained in each sample, the newest last; undefined when it was nothing. */
  gains(name: string, index: number): number[] | undefined {
    const gains = this.series.get(name)?.deltas.map((row) => row[index]!);
    return gains?.some((gain) => gain > 0) === true ? gains : undefined;
  }

  /** What it has gained in the whole window. */
  gained(name: string, index: number): number {
    return this.gains(name, index)?.reduce((sum, gain) => sum + gain, 0) ?? 0;
  }
}
