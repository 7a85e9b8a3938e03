import type { Role, RouteAnswers } from './route-answers.js';
import { estimateShift } from './statistics.js';

/** Fewer pairs say nothing. */
const MIN_PAIRS = 20;
/** Two processes of one release differ by so much, a ratio and milliseconds. */
const ALIKE = Math.log(1.03);
const ALIKE_MS = 0.1;

/** How much slower (above 1) the candidate answers. */
export interface LatencyShift {
  readonly ratio: number;
  /** 95 %. */
  readonly ci: readonly [number, number];
  readonly primaryMs: number;
  readonly candidateMs: number;
  /** P-value of no shift. */
  readonly pValue: number;
  /** Beyond what the two processes of the running release differ by. */
  readonly beyondNoise: boolean;
}

/** The candidate against both processes of the running release: it must differ from each, and more than they do. */
export function latencyShift({ times }: RouteAnswers): LatencyShift | null {
  if (times.length < MIN_PAIRS) return null;
  const shift = (of: Role, from: Role) => estimateShift(times.map((ms) => Math.log(ms[of] / ms[from])));
  const [primary, secondary] = [shift('candidate', 'primary'), shift('candidate', 'secondary')];
  const noise = shift('secondary', 'primary');
  const alike = Math.max(ALIKE, Math.abs(noise.middle));
  const slower = primary.low > alike && secondary.low > alike;
  const faster = primary.high < -alike && secondary.high < -alike;
  const [was, is] = [median(times.map((ms) => ms.primary)), median(times.map((ms) => ms.candidate))];
  return {
    ratio: Math.exp(primary.middle),
    ci: [Math.exp(primary.low), Math.exp(primary.high)],
    primaryMs: was,
    candidateMs: is,
    pValue: Math.max(primary.pValue, secondary.pValue),
    beyondNoise: (slower || faster) && Math.abs(is - was) >= ALIKE_MS,
  };
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
