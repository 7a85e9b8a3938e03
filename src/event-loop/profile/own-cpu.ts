import type { Estimate } from '../../core/snapshot.js';
import { studentQuantile } from '../../core/statistics/distributions.js';

const MIN_SAMPLES = 20;
/** One side of a 95 % interval. */
const TAIL = 0.025;

export interface SampledRequests {
  readonly samples: number;
  readonly ms: number;
  /** Sum over the requests of the square of the milliseconds that the samples of one request represent. */
  readonly squaredMs: number;
  /** Requests, with those that no sample has met. */
  readonly requests: number;
}

/**
 * The mean over requests of the sampled milliseconds. Its variance is that between requests, since samples of one request depend on each
 * other (cluster sampling: Cochran, "Sampling Techniques", 9A). The interval is Wilson's, which stays above 0.
 */
export function estimateOwnCpu({ samples, ms, squaredMs, requests }: SampledRequests): Estimate | null {
  if (samples < MIN_SAMPLES || ms <= 0 || requests === 0) return null;
  const mean = ms / requests;
  // Kish's effective sample size: so many equal requests would have the same sum of squares.
  const effective = (ms * ms) / squaredMs;
  const relative = requests > 1 ? ((1 / effective - 1 / requests) * requests) / (requests - 1) : 1;
  const q = studentQuantile(TAIL, Math.max(1, effective - 1));
  const variance = Math.max(0, relative);
  const middle = 1 + (q * q * variance) / 2;
  const half = q * Math.sqrt(variance + (q * q * variance * variance) / 4);
  return { mean, ci: [mean * (middle - half), mean * (middle + half)], samples };
}
