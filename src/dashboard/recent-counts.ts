import { pushBounded } from '../core/push-bounded.js';
import { WINDOW } from './view.js';

interface Series {
  /** Cumulative, at the last sample. */
  last: readonly number[];
  readonly gains: readonly Gains[];
  /** Of the time before the first sample. */
  before: readonly number[];
  sample: number;
}

/** What one counter has gained between samples, the newest last, and in all of them. */
interface Gains {
  readonly each: number[];
  sum: number;
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

  /** A new sample begins. After a gap only {@link before} tells of the time before it; null goes on from the last one. */
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

  /** Once a sample and name; negative where a counter began anew, which counts as nothing. */
  count(name: string, ...cumulative: readonly number[]): void {
    const known = this.series.get(name);
    if (known === undefined) {
      this.series.set(name, {
        last: cumulative,
        gains: cumulative.map(() => ({ each: [], sum: 0 })),
        before: [],
        sample: this.sample,
      });
      return;
    }
    known.gains.forEach((gains, index) => {
      const gain = Math.max(0, cumulative[index]! - known.last[index]!);
      gains.sum += gain - (gains.each.length === WINDOW ? gains.each.shift()! : 0);
      gains.each.push(gain);
    });
    known.last = cumulative;
    known.sample = this.sample;
  }

  /** What a counter had gained in the gap before the first sample. */
  before(name: string, ...gained: readonly number[]): void {
    const known = this.series.get(name);
    if (known !== undefined) known.before = gained;
  }

  /** What the counter at `index` has gained in each sample, the newest last; undefined when it was nothing. */
  gains(name: string, index: number): number[] | undefined {
    const gains = this.series.get(name)?.gains[index];
    return gains === undefined || gains.sum === 0 ? undefined : gains.each.slice();
  }

  /** What it has gained in the whole window. */
  gained(name: string, index: number): number {
    const known = this.series.get(name);
    const isBeforeIn = this.sample - this.firstSample < WINDOW;
    return (known?.gains[index]?.sum ?? 0) + (isBeforeIn ? (known?.before[index] ?? 0) : 0);
  }
}
