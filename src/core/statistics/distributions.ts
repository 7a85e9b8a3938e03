/** From here Student's t is read from the normal distribution: the incomplete beta function would lose more digits. */
const MANY_DEGREES = 1e5;

/** P(Z > z) of the standard normal distribution. Exact far into the tail, where 1 - Φ would be 0. */
export function normalUpperTail(z: number): number {
  const half = upperGammaRatio(0.5, (z * z) / 2) / 2;
  return z >= 0 ? half : 1 - half;
}

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

/** Lanczos' coefficients for g = 7, n = 9 (P. Godfrey, 2001): relative error of the gamma function below 1e-14. */
const LANCZOS_FIRST = 0.99999999999980993;
const LANCZOS = [
  676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
  -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
] as const;
const PRECISION = 1e-16;
/** Keeps Lentz' method away from a division by 0 (Numerical Recipes, 5.2). */
const TINY = 1e-300;
/** The fractions below need about √a terms; callers keep `a` below 1e5. */
const MAX_TERMS = 10_000;

/** ln Γ(x) for x > 0. */
export function logGamma(x: number): number {
  // Γ(x) = Γ(x + 1) / x keeps small arguments out of the range in which the series loses digits.
  if (x < 1) return logGamma(x + 1) - Math.log(x);
  const base = x + 6.5;
  let series = LANCZOS_FIRST;
  for (let i = 0; i < LANCZOS.length; i++) series += LANCZOS[i]! / (x + i);
  return Math.log(Math.sqrt(2 * Math.PI) * series) + (x - 0.5) * Math.log(base) - base;
}

/** Q(a, x) = Γ(a, x) / Γ(a), the upper incomplete gamma ratio, for a > 0 and x ≥ 0 (Numerical Recipes, 6.2). */
export function upperGammaRatio(a: number, x: number): number {
  if (x <= 0) return 1;
  if (x === Infinity) return 0;
  const scale = Math.exp(a * Math.log(x) - x - logGamma(a));
  if (x < a + 1) return 1 - scale * lowerGammaSeries(a, x);
  const first = x + 1 - a;
  const fraction = continuedFraction(
    first,
    (n) => -n * (n - a),
    (n) => first + 2 * n,
  );
  return scale / fraction;
}

function lowerGammaSeries(a: number, x: number): number {
  let term = 1 / a;
  let sum = term;
  for (let n = 1; n < MAX_TERMS && term > sum * PRECISION; n++) {
    term *= x / (a + n);
    sum += term;
  }
  return sum;
}

/** I_x(a, b), the regularised incomplete beta function, for 0 ≤ x ≤ 1 (Numerical Recipes, 6.4). */
export function betaRatio(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
  // The fraction converges fast on one side of the mean only; the other side is its mirror image.
  return x < (a + 1) / (a + b + 2) ? front / (a * betaFraction(x, a, b)) : 1 - front / (b * betaFraction(1 - x, b, a));
}

function betaFraction(x: number, a: number, b: number): number {
  const numerator = (n: number): number => {
    const m = n >> 1;
    return n % 2 === 0
      ? (m * (b - m) * x) / ((a + n - 1) * (a + n))
      : (-(a + m) * (a + b + m) * x) / ((a + n - 1) * (a + n));
  };
  return continuedFraction(1, numerator, () => 1);
}

/** first + a₁/(b₁ + a₂/(b₂ + …)) by the modified method of Lentz. */
function continuedFraction(first: number, a: (n: number) => number, b: (n: number) => number): number {
  let value = first;
  let c = first;
  let d = 0;
  for (let n = 1; n <= MAX_TERMS; n++) {
    const numerator = a(n);
    const denominator = b(n);
    d = 1 / awayFromZero(denominator + numerator * d);
    c = awayFromZero(denominator + numerator / c);
    value *= c * d;
    if (Math.abs(c * d - 1) < PRECISION * 10) break;
  }
  return value;
}

const awayFromZero = (x: number): number => (Math.abs(x) < TINY ? TINY : x);
