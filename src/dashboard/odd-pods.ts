import { findMedian } from '../core/statistics/median.js';
import type { PodMinute } from '../ports/history.js';
import { bytesOf, durationOf, percentOf } from './format.js';
import type { PodRow, Problem } from './view.js';

interface Figure {
  readonly key: 'p95Ms' | 'errors' | 'loopBusy' | 'throttled' | 'memoryBytes';
  readonly name: string;
  readonly valueOf: (pod: PodMinute) => number;
  /** A smaller difference is none. */
  readonly least: number;
  readonly textOf: (value: number) => string;
}

const errorShare = ({ errors, requests }: PodMinute): number => (requests === 0 ? 0 : errors / requests);

const FIGURES: readonly Figure[] = [
  { key: 'p95Ms', name: 'p95', valueOf: ({ p95Ms }) => p95Ms, least: 20, textOf: durationOf },
  { key: 'errors', name: 'errors', valueOf: errorShare, least: 0.02, textOf: percentOf },
  { key: 'loopBusy', name: 'event loop', valueOf: ({ loopBusy }) => loopBusy, least: 0.2, textOf: percentOf },
  { key: 'throttled', name: 'throttling', valueOf: ({ throttled }) => throttled, least: 0.05, textOf: percentOf },
  {
    key: 'memoryBytes',
    name: 'memory',
    valueOf: ({ memoryBytes }) => memoryBytes,
    least: 128 * 2 ** 20,
    textOf: bytesOf,
  },
];
const MIN_PODS = 3;
const TIMES = 2;

/** Marks figures that are at least twice the median of the other pods. By name. */
export function podRows(pods: readonly PodMinute[]): PodRow[] {
  const sorted = pods.toSorted((a, b) => a.pod.localeCompare(b.pod) || a.instance.localeCompare(b.instance));
  return sorted.map((pod) => ({
    ...pod,
    odd: sorted.length < MIN_PODS ? [] : FIGURES.filter((figure) => isOdd(figure, pod, sorted)).map(({ key }) => key),
  }));
}

function isOdd({ valueOf, least }: Figure, pod: PodMinute, all: readonly PodMinute[]): boolean {
  const usual = findMedian(all.filter((other) => other !== pod).map(valueOf));
  const value = valueOf(pod);
  return value >= TIMES * usual && value - usual >= least;
}

/** Sentences about odd pods, for the first screen. */
export function oddProblems(rows: readonly PodRow[]): Problem[] {
  return rows
    .filter(({ odd }) => odd.length > 0)
    .slice(0, 5)
    .map((row) => {
      const odd = FIGURES.filter(({ key }) => row.odd.includes(key)).map(({ name, valueOf, textOf }) => {
        const usual = findMedian(rows.filter((other) => other !== row).map(valueOf));
        return `${name} ${textOf(valueOf(row))}, ${textOf(usual)} elsewhere`;
      });
      return { level: 'warn', section: 'pods', text: `Pod ${row.pod} is the odd one: ${odd.join('; ')}.` };
    });
}
