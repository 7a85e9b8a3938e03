/**
 * Sub-buckets an octave. 64 of them, each answered by its middle, bound the relative error to 1/128 = 0.78 %.
 * Octave and sub-bucket are the place of a value's highest bit and the six bits below it.
 */
const BITS_PER_OCTAVE = 6;
const PER_OCTAVE = 1 << BITS_PER_OCTAVE;
/** 2^-10 ms (1 µs) and 2^22 ms (70 minutes): values outside are counted at the border. */
const MIN_EXPONENT = -10;
const MAX_EXPONENT = 22;
const OCTAVES = MAX_EXPONENT - MIN_EXPONENT;
const MIN_MS = 2 ** MIN_EXPONENT;
const END_MS = 2 ** MAX_EXPONENT;
const LAST = OCTAVES * PER_OCTAVE - 1;
/** Units of 2^-16 ms below 2^14 ms (16 s), of 2^-9 ms above it: 31 bits hold either, with six bits below the highest. */
const FINE_BITS = BITS_PER_OCTAVE - MIN_EXPONENT;
const COARSE_BITS = 31 - MAX_EXPONENT;
const FINE_END_MS = 2 ** (30 - FINE_BITS);

/** Lower border of a bucket, milliseconds. */
const lowerOf = (index: number): number =>
  2 ** ((index >> BITS_PER_OCTAVE) + MIN_EXPONENT) * (1 + (index & (PER_OCTAVE - 1)) / PER_OCTAVE);

const middleOf = (index: number): number => (lowerOf(index) + lowerOf(index + 1)) / 2;

/**
 * A mergeable log-linear histogram of milliseconds: relative error at most 0.78 % between 1 µs and 70 minutes, counts
 * that cannot wrap, memory only for the octaves that were seen (512 bytes each). Recording never throws.
 */
export class Histogram {
  count = 0;
  sumMs = 0;
  maxMs = 0;
  minMs = Infinity;
  private readonly octaves: (Float64Array | undefined)[] = Array.from({ length: OCTAVES }, () => undefined);

  record(ms: number): void {
    const index = this.indexOf(ms);
    const octave = (this.octaves[index >> BITS_PER_OCTAVE] ??= new Float64Array(PER_OCTAVE));
    octave[index & (PER_OCTAVE - 1)]! += 1;
    this.count += 1;
    this.sumMs += ms;
    if (ms > this.maxMs) this.maxMs = ms;
    if (ms < this.minMs) this.minMs = ms;
  }

  /** Adds what `other` has counted. */
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

  /** Mean, milliseconds; 0 when nothing was recorded. */
  get meanMs(): number {
    return this.count === 0 ? 0 : this.sumMs / this.count;
  }

  /** The nearest-rank quantile (`0 < q <= 1`), milliseconds; 0 when nothing was recorded. */
  quantileMs(q: number): number {
    if (this.count === 0) return 0;
    const rank = Math.max(1, Math.ceil(q * this.count));
    if (rank === this.count) return this.maxMs;
    let seen = 0;
    for (let i = 0; i < OCTAVES; i++) {
      const octave = this.octaves[i];
      if (octave === undefined) continue;
      for (let j = 0; j < PER_OCTAVE; j++) {
        seen += octave[j]!;
        if (seen >= rank) return Math.min(this.maxMs, Math.max(this.minMs, middleOf((i << BITS_PER_OCTAVE) + j)));
      }
    }
    return this.maxMs;
  }

  /**
   * How many were at most each bound (milliseconds, ascending). Adds up counts and computes no border but each bound's
   * own: a scrape asks this of every route.
   */
  countsAtMost(boundsMs: readonly number[]): number[] {
    const counts: number[] = [];
    let seen = 0;
    let index = 0;
    for (const bound of boundsMs) {
      if (bound >= this.maxMs) {
        counts.push(this.count);
        continue;
      }
      const last = this.indexOf(bound);
      const end = middleOf(last) <= bound ? last + 1 : last;
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
