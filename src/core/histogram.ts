/** Sub-buckets an octave: 64 of them, each answered by its middle, bound the relative error to 1/128 = 0.78 %. */
const BITS_PER_OCTAVE = 6;
const PER_OCTAVE = 1 << BITS_PER_OCTAVE;
/** 2^-10 ms (1 µs) and 2^22 ms (70 minutes): values outside are counted at the border. */
const MIN_EXPONENT = -10;
const MAX_EXPONENT = 22;
const OCTAVES = MAX_EXPONENT - MIN_EXPONENT;
const MIN_MS = 2 ** MIN_EXPONENT;
const END_MS = 2 ** MAX_EXPONENT;
/** Changes when what is written of a histogram does: 32 sub-buckets an octave, relative error at most 1.6 %. */
export const HISTOGRAM_LAYOUT = 1;
const FOLD = 2;
const LAST = OCTAVES * PER_OCTAVE - 1;
/** Units of 2^-16 ms below 2^14 ms (16 s), of 2^-9 ms above it: either fits 31 bits, with six bits below the highest. */
const FINE_BITS = BITS_PER_OCTAVE - MIN_EXPONENT;
const COARSE_BITS = 31 - MAX_EXPONENT;
const FINE_END_MS = 2 ** (30 - FINE_BITS);

/** Copied where one is made: several times as fast as making it anew. */
const NO_OCTAVES = Array.from({ length: OCTAVES }, (): Float64Array | undefined => undefined);

const findLower = (index: number): number =>
  2 ** ((index >> BITS_PER_OCTAVE) + MIN_EXPONENT) * (1 + (index & (PER_OCTAVE - 1)) / PER_OCTAVE);

const findMiddle = (index: number): number => (findLower(index) + findLower(index + 1)) / 2;

/** Log-linear, of milliseconds: relative error at most 0.78 % between 1 µs and 70 minutes. Recording never throws. */
export class Histogram {
  count = 0;
  sumMs = 0;
  maxMs = 0;
  minMs = Infinity;
  private readonly octaves = NO_OCTAVES.slice();

  record(ms: number): void {
    this.add(this.indexOf(ms), 1);
    this.sumMs += ms;
    if (ms > this.maxMs) this.maxMs = ms;
    if (ms < this.minMs) this.minMs = ms;
  }

  merge(other: Histogram): void {
    for (let i = 0; i < OCTAVES; i++) {
      const from = other.octaves[i];
      if (from === undefined) continue;
      const into = (this.octaves[i] ??= new Float64Array(PER_OCTAVE));
      for (let j = 0; j < PER_OCTAVE; j++) into[j]! += from[j]!;
    }
    this.count += other.count;
    this.sumMs += other.sumMs;
    this.maxMs = Math.max(this.maxMs, other.maxMs);
    this.minMs = Math.min(this.minMs, other.minMs);
  }

  /** Forgets what it has counted, and keeps its memory. */
  clear(): void {
    for (const octave of this.octaves) octave?.fill(0);
    Object.assign(this, { count: 0, sumMs: 0, maxMs: 0, minMs: Infinity });
  }

  figures(): { mean: number; p50: number; p95: number; p99: number; max: number } {
    const [p50, p95, p99] = this.quantilesMs([0.5, 0.95, 0.99]) as [number, number, number];
    return { mean: this.meanMs, p50, p95, p99, max: this.maxMs };
  }

  /** Makes this one, an earlier copy of `now`, equal to it, and adds what was recorded in between to `fresh`. */
  catchUp(now: Histogram, fresh: Histogram): void {
    if (now.count === this.count) return;
    let [lowest, highest] = [-1, 0];
    for (let i = 0; i < OCTAVES; i++) {
      const from = now.octaves[i];
      if (from === undefined) continue;
      const known = (this.octaves[i] ??= new Float64Array(PER_OCTAVE));
      for (let j = 0; j < PER_OCTAVE; j++) {
        const count = from[j]! - known[j]!;
        if (count <= 0) continue;
        known[j] = from[j]!;
        (fresh.octaves[i] ??= new Float64Array(PER_OCTAVE))[j]! += count;
        highest = (i << BITS_PER_OCTAVE) + j;
        if (lowest === -1) lowest = highest;
      }
    }
    fresh.maxMs = Math.max(fresh.maxMs, now.maxMs > this.maxMs ? now.maxMs : findMiddle(highest));
    fresh.minMs = Math.min(fresh.minMs, now.minMs < this.minMs ? now.minMs : findMiddle(lowest));
    fresh.count += now.count - this.count;
    fresh.sumMs += Math.max(0, now.sumMs - this.sumMs);
    const { count, sumMs, minMs, maxMs } = now;
    Object.assign(this, { count, sumMs, minMs, maxMs });
  }

  /** Its counts in {@link HISTOGRAM_LAYOUT}: buckets and counts in turns, the lowest first. */
  folded(): number[] {
    const pairs: number[] = [];
    this.octaves.forEach((octave, i) => {
      for (let j = 0; octave !== undefined && j < PER_OCTAVE; j += FOLD) {
        const count = octave[j]! + octave[j + 1]!;
        if (count > 0) pairs.push(((i << BITS_PER_OCTAVE) + j) / FOLD, Math.round(count));
      }
    });
    return pairs;
  }

  /** Adds a bucket of {@link HISTOGRAM_LAYOUT}; both of its halves get half of the count. Sum and extremes are the caller's. */
  unfold(bucket: number, count: number): void {
    const index = bucket * FOLD;
    if (!(index >= 0 && index < LAST)) throw new RangeError(`no bucket of a histogram: ${bucket}`);
    this.add(index, count / FOLD);
    this.add(index + 1, count / FOLD);
  }

  private add(index: number, count: number): void {
    (this.octaves[index >> BITS_PER_OCTAVE] ??= new Float64Array(PER_OCTAVE))[index & (PER_OCTAVE - 1)]! += count;
    this.count += count;
  }

  /** Mean of all durations, those above the quantile `q` counted as it: one that is far out changes little. */
  cappedMeanMs(q: number): number {
    if (this.count === 0) return 0;
    const capMs = this.quantileMs(q);
    let overMs = 0;
    for (let i = OCTAVES - 1; i >= 0; i--) {
      const octave = this.octaves[i];
      for (let j = PER_OCTAVE - 1; octave !== undefined && j >= 0; j--) {
        const middle = Math.min(this.maxMs, findMiddle((i << BITS_PER_OCTAVE) + j));
        if (middle <= capMs) return Math.max(0, (this.sumMs - overMs) / this.count);
        overMs += octave[j]! * (middle - capMs);
      }
    }
    return this.meanMs;
  }

  /** Mean, milliseconds; 0 when nothing was recorded. */
  get meanMs(): number {
    return this.count === 0 ? 0 : this.sumMs / this.count;
  }

  /** The nearest-rank quantile (`0 < q <= 1`), milliseconds; 0 when nothing was recorded. */
  quantileMs(q: number): number {
    return this.quantilesMs([q])[0]!;
  }

  /** Several of them, ascending, for the price of the last. */
  quantilesMs(qs: readonly number[]): number[] {
    if (this.count === 0) return qs.map(() => 0);
    const found: number[] = [];
    const findRank = (index: number): number => Math.max(1, Math.ceil(qs[index]! * this.count));
    let [seen, rank] = [0, findRank(0)];
    for (let i = 0; i < OCTAVES && rank < this.count; i++) {
      const octave = this.octaves[i];
      for (let j = 0; octave !== undefined && j < PER_OCTAVE && rank < this.count; j++) {
        seen += octave[j]!;
        while (seen >= rank && rank < this.count) {
          found.push(Math.min(this.maxMs, Math.max(this.minMs, findMiddle((i << BITS_PER_OCTAVE) + j))));
          rank = found.length < qs.length ? findRank(found.length) : Infinity;
        }
      }
    }
    while (found.length < qs.length) found.push(this.maxMs);
    return found;
  }

  /** How many were at most each bound (milliseconds, ascending). */
  countsAtMost(boundsMs: readonly number[]): number[] {
    const counts: number[] = [];
    let seen = 0;
    let index = 0;
    for (const bound of boundsMs) {
      const last = this.indexOf(bound);
      const end = findMiddle(last) <= bound ? last + 1 : last;
      while (index < end) {
        const octave = this.octaves[index >> BITS_PER_OCTAVE];
        const stop = Math.min(end, (index | (PER_OCTAVE - 1)) + 1);
        if (octave !== undefined) for (; index < stop; index++) seen += octave[index & (PER_OCTAVE - 1)]!;
        index = stop;
      }
      counts.push(seen);
    }
    return counts;
  }

  /** The bucket of a value; what is outside the range, or no number, belongs to the one at the border. */
  private indexOf(ms: number): number {
    if (!(ms >= MIN_MS)) return 0;
    if (ms >= END_MS) return LAST;
    // Integers: the bits of the double could only be read through memory, which costs more than all of this.
    const bits = ms < FINE_END_MS ? FINE_BITS : COARSE_BITS;
    const units = (ms * (1 << bits)) | 0;
    const highest = 31 - Math.clz32(units);
    const octave = highest - bits - MIN_EXPONENT;
    return (octave << BITS_PER_OCTAVE) | ((units >>> (highest - BITS_PER_OCTAVE)) & (PER_OCTAVE - 1));
  }
}
