import { absoluteDifference } from '../statistics/absolute.js';
import type { Arm } from '../../core/statistics/ratio-mean.js';
import { compareArms, sampleRatio, type Comparison } from '../statistics/compare-variants.js';
import type { ExperimentTotals } from '../totals/experiment-totals.js';
import type { ExperimentReport, ReportOptions, RequestMetric } from './experiment-report.js';
import { selectArm, COLUMNS, observedGate, type ObservedGate } from './observed-gate.js';
import { switchbackReport } from './switchback-report.js';
import { ALPHA, answers, listCaveats, FEW_UNITS, pValue, writeTitle, unanswered } from './wording.js';

/** Without a known share, a split this near to even counts as meant to be even; so does one that chance explains. */
const NEARLY_EVEN = 0.05;
/** Buckets of units that each variant needs for a comparison without the warm-up. */
const LEAST_WARM_ROWS = 10;

/** The report of one gate from totals: by time slices where a switchback alternates it, else by units. */
export function reportTotals(totals: ExperimentTotals, gate: string, options: ReportOptions = {}): ExperimentReport {
  const { route = null, metric = 'latency' } = options;
  const subject = { gate, route, metric };
  const isOfProcess = metric === 'cpu' || metric === 'memory';
  if (!isOfProcess && !Object.hasOwn(COLUMNS, metric)) {
    return unanswered(subject, 'there is no such metric; there are latency, errors, blocked, cpu and memory');
  }
  if (totals.slices.some((slice) => slice.gate === gate)) return switchbackReport(totals, gate, route, metric);
  if (isOfProcess) {
    const reason = `both variants share one process, so ${metric} cannot be split by request; alternate the gate with \`switchback\``;
    return unanswered(subject, reason);
  }
  const observed = observedGate(totals, gate, route);
  if (observed === null) return unanswered(subject, 'no request has checked the gate');
  return unitReport(totals, observed, { ...subject, metric });
}

function expectedShare({ on: { units: on }, off: { units: off }, treatmentShare }: ObservedGate): number | null {
  if (treatmentShare !== null) return treatmentShare;
  const nearlyEven = Math.abs(on.units / (on.units + off.units) - 0.5) < NEARLY_EVEN;
  return nearlyEven || !sampleRatio(off, on, 0.5).suspect ? 0.5 : null;
}

function unitReport(
  totals: ExperimentTotals,
  observed: ObservedGate,
  subject: { gate: string; route: string | null; metric: RequestMetric },
): ExperimentReport {
  const { metric } = subject;
  const share = expectedShare(observed);
  // A gate that is on for all or none has no split to check, and no control.
  const areCounted = Number.isFinite(observed.on.units.variance + observed.off.units.variance);
  const hasSplit = share !== null && share > 0 && share < 1 && observed.splitMoved === null && areCounted;
  const treatmentShare = hasSplit ? share : null;
  const arms = (part: 'all' | 'even') =>
    [selectArm(observed.off, metric, part), selectArm(observed.on, metric, part)] as const;
  const all = arms('all');
  const even = arms('even');
  // Next to nothing but warm-up was seen: there is nothing better to compare.
  const isWarm = Math.min(even[0].length, even[1].length) >= LEAST_WARM_ROWS;
  const plan = { alpha: ALPHA, sequential: false, treatmentShare };
  const compare = ([off, on]: readonly [Arm, Arm]): Comparison =>
    compareArms(off, on, plan, observed.off.units, observed.on.units);
  const { control, treatment } = compare(all);
  const isComparable = Math.min(all[0].length, all[1].length) >= 2;
  const comparison = isComparable ? { ...compare(isWarm ? even : all), control, treatment } : null;
  const part = isWarm ? 'even' : 'all';
  const errors = absoluteDifference(selectArm(observed.off, 'errors', part), selectArm(observed.on, 'errors', part));
  const caveats = listCaveats({
    observed,
    comparison,
    errors,
    metric,
    sources: totals.sources,
    treatmentShare,
    isWarm,
  });
  if (comparison === null) {
    return unanswered(subject, `too few units: ${treatment.units} on, ${control.units} off`, caveats);
  }
  const areFew = Math.min(control.units, treatment.units) < FEW_UNITS;
  const parts = [...answers(metric, comparison, errors, 'units', areFew), sampleRatioPart(comparison, treatmentShare)];
  return { ...subject, comparison, caveats, text: `${writeTitle(subject)}: ${parts.join('; ')}` };
}

function sampleRatioPart({ sampleRatioMismatch }: Comparison, treatmentShare: number | null): string {
  if (treatmentShare === null) return 'sample ratio not checked';
  return sampleRatioMismatch.suspect
    ? `sample ratio mismatch, ${pValue(sampleRatioMismatch.pValue)}`
    : 'sample ratio ok';
}
