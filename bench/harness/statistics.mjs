// Median of paired ratios with an interval that knows that rounds of one process are not independent.

const RESAMPLES = 4000;

/** The nearest-rank `q` quantile of ascending numbers; NaN of none. */
export function percentile(sorted, q) {
  return sorted.length === 0 ? NaN : sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)];
}

export function median(numbers) {
  const sorted = Float64Array.from(numbers).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * Median of all rounds and its 95 % interval, `{ median, low, high }`, from one list of numbers for each process generation.
 * Two-stage bootstrap: generations are drawn first, then rounds within each. Rounds of one process share its luck (code
 * layout, what the compiler inlined), so drawing rounds alone would give an interval that is too narrow.
 */
export function medianWithInterval(generations) {
  const random = mulberry32(1);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const medians = Float64Array.from({ length: RESAMPLES }, () =>
    median(
      generations.flatMap(() => {
        const rounds = pick(generations);
        return rounds.map(() => pick(rounds));
      }),
    ),
  ).sort();
  return {
    median: median(generations.flat()),
    low: percentile(medians, 0.025),
    high: percentile(medians, 0.975),
  };
}

/** A small seeded generator (public domain, Tommy Ettinger): the same samples always give the same interval. */
function mulberry32(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
