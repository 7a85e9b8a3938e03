import { isSafe } from '../allowed.js';
import { percent, ms, printable } from '../quantity.js';
import type { DifferenceKind } from './json-differences.js';
import { latencyShift, type LatencyShift } from './latency.js';
import { computePValue, type RouteAnswers, type Tally } from './route-answers.js';
import { standing } from './statistics.js';

/** One change, as the report prints it. */
export interface Finding {
  readonly route: string;
  readonly kind: 'status' | 'header' | 'shape' | 'field' | 'latency';
  readonly path: string;
  readonly text: string;
  readonly example: string | null;
}

const KINDS: Readonly<Record<DifferenceKind, Finding['kind']>> = {
  status: 'status',
  header: 'header',
  missing: 'shape',
  added: 'shape',
  type: 'shape',
  value: 'field',
  length: 'field',
};

/** By chance one in eight of what differs every other time: so many answers that all differ are enough. */
const ENOUGH_ALIKE = 3;

interface Test {
  readonly pValue: number;
  readonly finding: Finding;
  readonly counts: boolean;
}

const ORDER: readonly Finding['kind'][] = ['status', 'header', 'shape', 'field', 'latency'];

/**
 * Differences beyond chance and beyond those of the same release from itself. `again` holds the p-values of differences that
 * were looked at again, by themselves.
 */
export function listFindings(routes: readonly RouteAnswers[], again: ReadonlyMap<Tally, number>): Finding[] {
  const tests = routes.flatMap((route) => [...listTests(route, again)]);
  const stands = standing(tests.map(({ pValue }) => pValue));
  const found = tests.filter(({ counts }, i) => stands[i] && counts).map(({ finding }) => finding);
  return found.toSorted((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
}

function* listTests(route: RouteAnswers, again: ReadonlyMap<Tally, number>): Generator<Test> {
  for (const tally of route.tallies.values()) {
    if (tally.raw + tally.noise === 2 * tally.both) continue;
    const pValue = isCertain(route, tally) ? 0 : computeChance(tally, again.get(tally));
    yield { pValue, finding: buildFinding(route, tally), counts: true };
  }
  const latency = latencyShift(route);
  if (latency !== null)
    yield { pValue: latency.pValue, finding: latencyFinding(route, latency), counts: latency.beyondNoise };
}

/**
 * A request that must not be repeated cannot be proven by numbers. A difference that the same release never shows is reported at once: another status, and
 * what differs in each of several answers.
 */
const isCertain = ({ pairs }: RouteAnswers, { kind, example, raw, noise }: Tally): boolean =>
  !isSafe(example.method) && noise === 0 && (kind === 'status' || (raw === pairs && pairs >= ENOUGH_ALIKE));

/** The better of two looks: twice the chance. */
function computeChance(tally: Tally, again: number | undefined): number {
  const first = computePValue(tally);
  return again === undefined ? first : Math.min(1, 2 * Math.min(first, again));
}

function buildFinding({ name, pairs }: RouteAnswers, { kind, path, shown, raw, noise, example }: Tally): Finding {
  const place = path === '' ? 'the body' : printable(path);
  const words = {
    status: `status ${shown}`,
    header: `header ${path} has another value`,
    missing: `${place} is missing`,
    added: `${place} is new`,
    type: `${place} has another type`,
    value: `${place} has another value`,
    length: `${place} has another length`,
  }[kind];
  const told = KINDS[kind];
  return {
    route: name,
    kind: told,
    path,
    text: `${told === 'shape' ? 'shape: ' : ''}${words} in ${raw} of ${pairs} answers (the same release again: ${noise})`,
    example: `${example.method} ${printable(example.path)}`,
  };
}

const change = (ratio: number): string => `${ratio >= 1 ? '+' : ''}${percent(ratio - 1)}`;

function latencyFinding({ name }: RouteAnswers, { ratio, ci, primaryMs, candidateMs }: LatencyShift): Finding {
  return {
    route: name,
    kind: 'latency',
    path: '',
    text: `latency ${change(ratio)} (95 % interval ${change(ci[0])} to ${change(ci[1])}): ${ms(primaryMs)} → ${ms(candidateMs)}`,
    example: null,
  };
}
