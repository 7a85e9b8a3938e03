import { absoluteDifference } from '../../core/statistics/inference.js';
import { compareArms, sampleRatio, type Comparison } from '../statistics/compare-variants.js';
import type { ExperimentTotals } from '../totals/experiment-totals.js';
import type { ExperimentReport, FleetEffect, ReportOptions, RequestMetric } from './experiment-report.js';
import {
  areUnitsMixed,
  armOf,
  COLUMNS,
  isUncountable,
  matches,
  observedGate,
  type ObservedGate,
  type Part,
} from './observed-gate.js';
import { switchbackReport } from './switchback-report.js';
import { ALPHA, answers, caveatsOf, FEW_UNITS, percent, pValue, titleOf, unanswered } from './wording.js';

/** A split this near to even was meant to be even, when nobody says what was meant; so was one that chance explains. */
const NEARLY_EVEN = 0.05;
/** So many buckets of units a variant must be left for a comparison without the warm-up. */
const LEAST_WARM_ROWS = 10;

/** The report of one gate from totals: by time slices where a switchback alternates it, else by units. */
export function reportOf(totals: ExperimentTotals, gate: string, options: ReportOptions = {}): ExperimentReport {
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
  return unitReport(totals, observed, { ...subject, metric }, expectedShare(options, observed));
}

function expectedShare({ treatmentShare }: ReportOptions, observed: ObservedGate): number | null {
  if (treatmentShare !== undefined) return treatmentShare;
  if (observed.treatmentShare !== null) return observed.treatmentShare;
  const on = observed.on.units;
  const off = observed.off.units;
  const nearlyEven = Math.abs(on.units / (on.units + off.units) - 0.5) < NEARLY_EVEN;
  return nearlyEven || !sampleRatio(off, on, 0.5).suspect ? 0.5 : null;
}

function unitReport(
  totals: ExperimentTotals,
  observed: ObservedGate,
  subject: { gate: string; route: string | null; metric: RequestMetric },
  share: number | null,
): ExperimentReport {
  const { metric } = subject;
  // A gate that is on for all or none has no split to check, and no control.
  const isMoved = observed.splitMoved !== null || areUnitsMixed(observed);
  const hasSplit = share !== null && share > 0 && share < 1 && observed.splitMoved === null && !isUncountable(observed);
  const treatmentShare = hasSplit ? share : null;
  const plan = { alpha: ALPHA, sequential: false, treatmentShare };
  const compare = (part: Part): Comparison & { rows: number } => {
    const [off, on] = [armOf(observed.off, metric, part), armOf(observed.on, metric, part)];
    const compared = compareArms(off, on, plan, observed.off.units, observed.on.units);
    return { ...compared, rows: Math.min(off.length, on.length) };
  };
  const { rows, ...all } = compare('all');
  const { rows: warmRows, ...warm } = compare(isMoved ? 'even' : 'warm');
  // Where next to nothing but warm-up was seen there is nothing better to compare.
  const isWarm = warmRows >= LEAST_WARM_ROWS && (isMoved || COLUMNS[metric].warmUp !== undefined);
  const { control, treatment } = all;
  const comparison = rows < 2 ? null : { ...(isWarm ? warm : all), control, treatment };
  const part = isWarm && isMoved ? 'even' : 'all';
  const errors = absoluteDifference(armOf(observed.off, 'errors', part), armOf(observed.on, 'errors', part));
  const { sources } = totals;
  const caveats = caveatsOf({ observed, comparison, errors, metric, sources, treatmentShare, isWarm });
  if (comparison === null) {
    return unanswered(subject, `too few units: ${treatment.units} on, ${control.units} off`, caveats);
  }
  const areFew = Math.min(control.units, treatment.units) < FEW_UNITS;
  const fleet = fleetEffect(totals, subject, comparison);
  const parts = [
    ...answers(metric, comparison, errors, 'units', areFew),
    sampleRatioPart(comparison, treatmentShare),
    ...(fleet === null ? [] : [`${percent(fleet.relativeDelta)} over all routes`]),
  ];
  return { ...subject, comparison, caveats, text: `${titleOf(subject)}: ${parts.join('; ')}`, fleet };
}

function sampleRatioPart({ sampleRatioMismatch }: Comparison, treatmentShare: number | null): string {
  if (treatmentShare === null) return 'sample ratio not checked';
  return sampleRatioMismatch.suspect
    ? `sample ratio mismatch, ${pValue(sampleRatioMismatch.pValue)}`
    : 'sample ratio ok';
}

/** Dilution: what a change on one route does to the mean of all, by its share of the latency-seconds. */
function fleetEffect(
  totals: ExperimentTotals,
  { route, metric }: { route: string | null; metric: RequestMetric },
  { relativeDelta, ci }: Comparison,
): FleetEffect | null {
  if (route === null || metric !== 'latency' || !Number.isFinite(ci[0])) return null;
  let all = 0;
  let own = 0;
  for (const traffic of totals.traffic) {
    all += traffic.succeededMs;
    if (matches(traffic, route)) own += traffic.succeededMs;
  }
  if (all === 0) return null;
  return { share: own / all, relativeDelta: (own / all) * relativeDelta };
}
