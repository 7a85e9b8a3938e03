import type { Comparison } from '../statistics/compare-variants.js';
import type { AbsoluteDifference } from '../statistics/absolute.js';
import { MAX_WARM_UP_REQUESTS, WARM_UP_REQUESTS } from '../totals/gate-tally.js';
import type { ExperimentMetric, ExperimentReport, RequestMetric } from './experiment-report.js';
import { areUnitsMixed, type ObservedGate, sumCell } from './observed-gate.js';

/** Error probability of every interval and test in a report. */
export const ALPHA = 0.05;

/** A relative change with its sign: `-4.9 %`, `+4.9 %`. */
const percent = (share: number): string => `${signed(share * 100)} %`;

function signed(value: number): string {
  const digits = Math.abs(value) < 0.095 && value !== 0 ? 2 : 1;
  const rounded = Number(value.toFixed(digits)) + 0;
  return `${rounded > 0 ? '+' : ''}${rounded.toFixed(digits)}`;
}

/** A share without a sign: `0.4 %`. */
const rate = (share: number): string => `${(share * 100).toFixed(share > 0 && share < 0.00095 ? 2 : 1)} %`;

export const pValue = (p: number): string => (p < 0.0001 ? 'p < 0.0001' : `p ${p.toFixed(4)}`);

/**
 * `latency -4.9 % (95 % CI -5.9 … -3.9), p 0.0001, 412 / 398 units, MDE 1.4 %`; a text warns of few units, and
 * ends with the errors beside every other metric of requests.
 */
export function answers(
  metric: ExperimentMetric,
  comparison: Comparison,
  errors: AbsoluteDifference,
  unitName: string,
  areFew: boolean,
): string[] {
  const { ci, control, treatment, minimumDetectableEffect } = comparison;
  const hasInterval = Number.isFinite(ci[0]) && Number.isFinite(ci[1]);
  const answer = [
    control.mean === 0 ? absolute(metric, comparison, errors) : relative(metric, comparison, hasInterval),
    `${treatment.units} / ${control.units} ${unitName}`,
    ...(hasInterval ? [`MDE ${rate(minimumDetectableEffect)}`] : []),
    ...(areFew ? [`too few ${unitName} to rely on it`] : []),
  ].join(', ');
  if (metric === 'errors' || metric === 'memory') return [answer];
  return [answer, errors.pValue < ALPHA ? `errors ${rateChange(errors)}` : 'errors unchanged'];
}

function relative(metric: string, { relativeDelta, ci, pValue: p }: Comparison, hasInterval: boolean): string {
  const interval = hasInterval ? `95 % CI ${signed(ci[0] * 100)} … ${signed(ci[1] * 100)}` : 'no interval';
  return `${metric} ${percent(relativeDelta)} (${interval}), ${pValue(p)}`;
}

/** A control mean of 0 leaves no relative difference. */
const absolute = (metric: string, { treatment }: Comparison, errors: AbsoluteDifference): string =>
  metric === 'errors'
    ? `errors ${rateChange(errors)}`
    : `${metric} 0.0 → ${treatment.mean.toFixed(1)} ms a request, no relative difference`;

const rateChange = (errors: AbsoluteDifference): string =>
  `${rate(errors.control)} → ${rate(errors.treatment)}, ${pValue(errors.pValue)}`;

export const unanswered = (
  subject: { gate: string; route: string | null; metric: string },
  reason: string,
  caveats: readonly string[] = [],
): ExperimentReport => ({
  ...subject,
  comparison: null,
  caveats: [...caveats, `${reason[0]!.toUpperCase()}${reason.slice(1)}.`],
  text: `${writeTitle(subject)}: ${subject.metric} unknown: ${reason}`,
});

export const writeTitle = ({ gate, route }: { gate: string; route: string | null }): string =>
  route === null ? gate : `${gate} on ${route}`;

/** Below this many units an arm the t test leans on its assumptions, and one odd unit decides. */
export const FEW_UNITS = 30;
/** A relative difference of abandoned requests that would bend the latency of those that were not. */
const ABORT_EXCESS = 0.002;

export interface Findings {
  observed: ObservedGate;
  comparison: Comparison | null;
  errors: AbsoluteDifference;
  metric: RequestMetric;
  sources: readonly string[];
  /** Null: the expected share is unknown. */
  treatmentShare: number | null;
  /** The comparison leaves out a route's first requests. */
  isWarm: boolean;
}

/** Reasons to doubt the number, one sentence each, with what to do where something can be done. */
export function listCaveats(findings: Findings): string[] {
  const { observed, comparison, errors, metric, sources, treatmentShare, isWarm } = findings;
  const caveats: string[] = [];
  const on = Math.round(observed.on.units.units);
  const off = Math.round(observed.off.units.units);
  if (Math.min(on, off) < FEW_UNITS) {
    caveats.push(
      `Too few units: ${on} on, ${off} off; at least ${FEW_UNITS} in each are needed for an interval to trust.`,
    );
  }
  if (comparison?.sampleRatioMismatch.suspect === true && treatmentShare !== null) {
    const observedShare = rate(on / (on + off));
    caveats.push(
      `Sample ratio mismatch: ${observedShare} of the units are on, ${rate(treatmentShare)} should be. The variants do not hold the same kind of units; do not believe the difference before the cause is found.`,
    );
  }
  if (observed.splitMoved !== null) {
    const [from, to] = observed.splitMoved;
    caveats.push(
      `The split changed while the gate was compared: ${rate(from)} of the units were on, then ${rate(to)}. The difference is taken within periods, and the sample ratio was not checked.`,
    );
  } else if (treatmentShare === null) {
    caveats.push('The sample ratio was not checked: the share of units that should be on is unknown, or their number.');
  }
  if (areUnitsMixed(observed)) {
    const inBoth = Math.round(observed.unitsInBoth.units);
    caveats.push(
      `About ${inBoth} units had both variants: the gate's share changed, or the unit is not what the gate is randomised by.`,
    );
  }
  if (new Set(sources).size < sources.length) {
    caveats.push('The totals of one process were added more than once, so the interval is too narrow.');
  }
  if (new Set(sources).size === 1) {
    caveats.push('One process: its machine and its neighbours are part of the result. Merge the totals of more pods.');
  }
  caveats.push(
    'Both variants share one event loop, heap and CPU: a slow variant slows the other too, and CPU and memory cannot be split by request (a switchback can).',
  );
  caveats.push(...latencyCaveats(metric, errors));
  const abortedOn = abortedShare(observed, 'on');
  const abortedOff = abortedShare(observed, 'off');
  if (Math.abs(abortedOn - abortedOff) > ABORT_EXCESS) {
    caveats.push(
      `Clients gave up on ${rate(abortedOn)} of requests (off: ${rate(abortedOff)}); those are in no figure.`,
    );
  }
  if (isWarm) {
    caveats.push(
      `Warm-up: the first requests of a route, until each variant has had ${WARM_UP_REQUESTS} (at most ${MAX_WARM_UP_REQUESTS} in all), are in the means, but not in the difference.`,
    );
  }
  return caveats;
}

export const latencyCaveats = (metric: ExperimentMetric, errors: AbsoluteDifference): string[] =>
  metric === 'latency' && errors.pValue < ALPHA
    ? ['Latency is of successful requests only, and the variants do not fail equally often.']
    : [];

function abortedShare(observed: ObservedGate, variant: 'on' | 'off'): number {
  const aborted = sumCell(observed[variant], 'aborted');
  return aborted === 0 ? 0 : aborted / (aborted + sumCell(observed[variant], 'completed'));
}
