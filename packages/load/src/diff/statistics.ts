/** The 97.5 % quantile of the normal distribution. */
const Z = 1.959964;

/** P(X >= b) for X of b + c fair coins: McNemar's exact test of two proportions of the same requests. */
export function mcNemar(b: number, c: number): number {
  const n = b + c;
  if (b <= c) return 1;
  let logTerm = -n * Math.LN2;
  let tail = 0;
  // From all heads down to b of them.
  for (let heads = n; heads >= b; heads--) {
    tail += Math.exp(logTerm);
    logTerm += Math.log(heads) - Math.log(n - heads + 1);
  }
  return Math.min(1, tail);
}

export interface Shift {
  /** The middle of the differences (Hodges and Lehmann). */
  readonly middle: number;
  readonly low: number;
  readonly high: number;
  /** P-value of no shift, two-sided. */
  readonly pValue: number;
}

/** How far paired differences lie from 0, with a 95 % interval: Wilcoxon's signed ranks, which outliers do not move. */
export function estimateShift(differences: readonly number[]): Shift {
  const n = differences.length;
  const walsh = new Float64Array((n * (n + 1)) / 2);
  let next = 0;
  for (let i = 0; i < n; i++) for (let j = i; j < n; j++) walsh[next++] = (differences[i]! + differences[j]!) / 2;
  walsh.sort();
  const half = walsh.length / 2;
  const spread = Math.sqrt((n * (n + 1) * (2 * n + 1)) / 24);
  const border = Math.max(0, Math.floor(half - Z * spread));
  const above = walsh.reduce((count, value) => count + (value > 0 ? 1 : value === 0 ? 0.5 : 0), 0);
  const z = Math.max(0, Math.abs(above - half) - 0.5) / spread;
  return {
    middle: (walsh[Math.floor((walsh.length - 1) / 2)]! + walsh[Math.floor(walsh.length / 2)]!) / 2,
    low: walsh[border]!,
    high: walsh[walsh.length - 1 - border]!,
    pValue: 2 * upperTail(z),
  };
}

/** P(Z > z) of a normal distribution, z >= 0, to 1.5e-7 (Abramowitz and Stegun 7.1.26). */
export function upperTail(z: number): number {
  const x = z / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const polynomial = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return (polynomial * Math.exp(-x * x)) / 2;
}

/** Which of many tests stand when one in twenty of those may be false (Benjamini and Hochberg). */
export function standing(pValues: readonly number[], rate = 0.05): boolean[] {
  const ascending = pValues.toSorted((a, b) => a - b);
  const last = ascending.findLastIndex((p, i) => p <= (rate * (i + 1)) / ascending.length);
  return pValues.map((p) => last >= 0 && p <= ascending[last]!);
}
