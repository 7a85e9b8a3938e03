import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { UnitCount } from '../statistics/compare-variants.js';

/** log2 of the number of bits: 131,072 of them are 16 KiB, and count half a million units to 0.5 %. */
const LOG2_BITS = 17;
const BITS = 2 ** LOG2_BITS;

/** Units per bit up to which the estimate is valid: 786,432 units, to 1 %. Beyond it hash collisions skew what is left. */
const MAX_LOAD = 6;

/** Counts distinct units in fixed memory by linear counting (Whang, Vander-Zanden & Taylor 1990); can be merged. */
export class UnitBitmap {
  private constructor(private readonly bytes: Uint8Array) {}

  static empty(): UnitBitmap {
    return new UnitBitmap(new Uint8Array(BITS / 8));
  }

  /** Null when the text is no bitmap. */
  static parse(text: string): UnitBitmap | null {
    try {
      const bytes = inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: BITS / 8 });
      return bytes.length === BITS / 8 ? new UnitBitmap(bytes) : null;
    } catch {
      // The text is not deflated, or longer than a bitmap; the caller throws with its place.
      return null;
    }
  }

  /** Deflated, base64: 1.4 KiB for a few hundred units, at most 22 KiB. The lowest level takes a tenth of the time of the usual. */
  toString(): string {
    return deflateRawSync(this.bytes, { level: 1 }).toString('base64');
  }

  /** True when no unit with this bit was added before. `hash` has 32 bits. */
  add(hash: number): boolean {
    const bit = hash >>> (32 - LOG2_BITS);
    const mask = 1 << (bit & 7);
    const before = this.bytes[bit >> 3]!;
    this.bytes[bit >> 3] = before | mask;
    return (before & mask) === 0;
  }

  merge(other: UnitBitmap): void {
    for (let i = 0; i < this.bytes.length; i++) this.bytes[i]! |= other.bytes[i]!;
  }

  /** The estimate n = -m·ln(share of bits unset) and its variance m·(e^(n/m) - n/m - 1); infinite above `MAX_LOAD`. */
  count(): UnitCount {
    let set = 0;
    for (let byte of this.bytes) for (; byte !== 0; byte &= byte - 1) set += 1;
    // A full bitmap has no estimate; half a bit short of it gives the largest.
    const load = Math.log(BITS / Math.max(BITS - set, 0.5));
    const variance = load > MAX_LOAD ? Infinity : BITS * (Math.exp(load) - load - 1);
    return { units: load * BITS, variance };
  }
}
