import { betaRatio, upperGammaRatio } from './special-functions.js';

/**
 * From here Student's t is read from the normal distribution through {@link normalEquivalent}: the incomplete beta
 * function would lose more digits to ln Γ than the approximation costs.
 */
const MANY_DEGREES = 1e5;

/** P(Z > z) of the standard normal distribution. Exact far into the tail, where 1 - Φ would be 0. */
export function normalUpperTail(z: number): number {
  const half = upperGammaRatio(0.5, (z * z) / 2) / 2;
  return z >= 0 ? half : 1 - half;
}

/** P(X > x) of the chi-squared distribution. */
export const chiSquaredUpperTail = (x: number, degrees: number): number => upperGammaRatio(degrees / 2, x / 2);

/** P(T > t) of Student's t distribution; the degrees of freedom need not be whole (Numerical Recipes, 6.14.3). */
export function studentUpperTail(t: number, degrees: number): number {
  if (degrees > MANY_DEGREES) return normalUpperTail(normalEquivalent(t, degrees));
  const half = betaRatio(degrees / (degrees + t * t), degrees / 2, 0.5) / 2;
  return t >= 0 ? half : 1 - half;
}

/** Abramowitz & Stegun 26.7.8. */
const normalEquivalent = (t: number, degrees: number): number =>
  (t * (1 - 1 / (4 * degrees))) / Math.sqrt(1 + (t * t) / (2 * degrees));

/** The z with P(Z > z) = tail, for 0 < tail < 1. */
export const normalQuantile = (tail: number): number => quantile(tail, normalUpperTail);

/** The t with P(T > t) = tail, for 0 < tail < 1. */
export const studentQuantile = (tail: number, degrees: number): number =>
  quantile(tail, (t) => studentUpperTail(t, degrees));

/** Inverts the upper tail of a distribution that is symmetric around 0. */
function quantile(tail: number, upperTail: (x: number) => number): number {
  if (tail === 0.5) return 0;
  if (tail > 0.5) return -quantile(1 - tail, upperTail);
  if (!(tail > 0)) return Infinity;
  let low = 0;
  let high = 2;
  while (upperTail(high) > tail) {
    low = high;
    high *= 2;
  }
  // Halving cannot leave the bracket, and needs about 45 steps.
  while (high - low > 1e-14 * high) {
    const middle = (low + high) / 2;
    if (middle === low || middle === high || middle === Infinity) break;
    if (upperTail(middle) > tail) low = middle;
    else high = middle;
  }
  return high;
}
