/**
 * Whether a figure grows over a run: the median of the slopes between all pairs of samples (Theil-Sen), so that single
 * outliers do not decide, times the time that was measured. `samples`: [milliseconds, value].
 */
export function trendOf(samples) {
  const slopes = [];
  for (let i = 0; i < samples.length; i++) {
    for (let j = i + 1; j < samples.length; j++) {
      slopes.push((samples[j][1] - samples[i][1]) / (samples[j][0] - samples[i][0]));
    }
  }
  const slope = median(slopes);
  const values = samples.map(([, value]) => value);
  const spanMs = samples.at(-1)[0] - samples[0][0];
  return { level: median(values), min: Math.min(...values), max: Math.max(...values), growth: slope * spanMs };
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1];
}
