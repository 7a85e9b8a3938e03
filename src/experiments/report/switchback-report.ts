import type { Row } from '../../core/statistics/ratio-mean.js';
import { comparePairs, pairedDifference, type RowPair } from '../statistics/paired.js';
import { COLUMN, type Cell } from '../totals/gate-tally.js';
import type { ExperimentTotals, SliceTotals } from '../totals/experiment-totals.js';
import type { ExperimentMetric, ExperimentReport } from './experiment-report.js';
import { COLUMNS, matches } from './observed-gate.js';
import { ALPHA, answers, latencyCaveats, writeTitle, unanswered } from './wording.js';

/** Below this many pairs an interval is wide and leans on its assumptions. */
const FEW_PAIRS = 10;

export function switchbackReport(
  totals: ExperimentTotals,
  gate: string,
  route: string | null,
  metric: ExperimentMetric,
): ExperimentReport {
  const subject = { gate, route, metric };
  if (route !== null && (metric === 'cpu' || metric === 'memory')) {
    return unanswered(subject, `${metric} is of the whole process; ask without \`route\``);
  }
  const slices = totals.slices.filter((slice) => slice.gate === gate);
  const pairs = joinPairs(slices, (slice) => readRow(slice, metric, route));
  const errors = pairedDifference(joinPairs(slices, (slice) => readRow(slice, 'errors', route)));
  const caveats = [
    'A switchback compares time slices of one process at a time: what a variant leaves behind for longer than the wash-out (caches, heap) counts for the other.',
    ...(pairs.length < FEW_PAIRS
      ? [`Few pairs: ${pairs.length}; ${FEW_PAIRS} or more give an interval to trust.`]
      : []),
    ...latencyCaveats(metric, errors),
  ];
  const comparison = comparePairs(pairs, ALPHA);
  if (comparison === null)
    return unanswered(subject, `${pairs.length} complete pairs of time slices with data`, caveats);
  return {
    ...subject,
    comparison,
    caveats,
    text: `${writeTitle(subject)}: ${answers(metric, comparison, errors, 'slices', pairs.length < FEW_PAIRS).join('; ')}`,
  };
}

function joinPairs(slices: readonly SliceTotals[], readRow: (slice: SliceTotals) => Row | null): RowPair[] {
  const open = new Map<string, { on?: Row; off?: Row }>();
  for (const slice of slices) {
    const row = readRow(slice);
    if (row === null) continue;
    const pair = open.get(slice.pair) ?? {};
    open.set(slice.pair, { ...pair, [slice.on ? 'on' : 'off']: row });
  }
  return [...open.values()].flatMap(({ on, off }) =>
    on === undefined || off === undefined ? [] : [{ control: off, treatment: on }],
  );
}

/** Null when the slice has no value of the metric. */
function readRow(slice: SliceTotals, metric: ExperimentMetric, route: string | null): Row | null {
  const total = (cell: Cell): number =>
    slice.routes
      .filter(([method, pattern]) => matches({ method, route: pattern }, route))
      .reduce((sum, cells) => sum + (cells[COLUMN[cell] + 2] as number), 0);
  if (metric === 'memory') return makeRow(1, slice.memoryBytes);
  if (metric === 'cpu') return makeRow(total('completed'), slice.cpuMs);
  const [count, sum] = COLUMNS[metric].all;
  return makeRow(total(count), total(sum));
}

const makeRow = (count: number, sum: number | null): Row | null =>
  count === 0 || sum === null ? null : { count, sum, beforeCount: 0, beforeSum: 0 };
