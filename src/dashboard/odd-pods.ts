import { findMedian } from '../core/statistics/median.js';
import type { PodMinute } from '../ports/history.js';
import { formatBytes, formatDuration, formatPercent } from './format.js';
import type { PodRow, Problem } from './view.js';

interface Figure {
  readonly key: 'p95Ms' | 'errors' | 'loopBusy' | 'throttled' | 'memoryBytes';
  readonly name: string;
  readonly read: (pod: PodMinute) => number;
  /** A smaller difference is none. */
  readonly least: number;
  readonly format: (value: number) => string;
}

const errorShare = ({ errors, requests }: PodMinute): number => (requests === 0 ? 0 : errors / requests);

const FIGURES: readonly Figure[] = [
  { key: 'p95Ms', name: 'p95', read: ({ p95Ms }) => p95Ms, least: 20, format: formatDuration },
  { key: 'errors', name: 'errors', read: errorShare, least: 0.02, format: formatPercent },
  { key: 'loopBusy', name: 'event loop', read: ({ loopBusy }) => loopBusy, least: 0.2, format: formatPercent },
  { key: 'throttled', name: 'throttling', read: ({ throttled }) => throttled, least: 0.05, format: formatPercent },
  {
    key: 'memoryBytes',
    name: 'memory',
    read: ({ memoryBytes }) => memoryBytes,
    least: 128 * 2 ** 20,
    format: formatBytes,
  },
];
const MIN_PODS = 3;
const TIMES = 2;

/** Marks figures that are at least twice the median of the other pods. By name. */
export function markOddPods(pods: readonly PodMinute[]): PodRow[] {
  const sorted = pods.toSorted((a, b) => a.pod.localeCompare(b.pod) || a.instance.localeCompare(b.instance));
  return sorted.map((pod) => ({
    ...pod,
    odd: sorted.length < MIN_PODS ? [] : FIGURES.filter((figure) => isOdd(figure, pod, sorted)).map(({ key }) => key),
  }));
}

function isOdd({ read, least }: Figure, pod: PodMinute, all: readonly PodMinute[]): boolean {
  const usual = findMedian(all.filter((other) => other !== pod).map(read));
  const value = read(pod);
  return value >= TIMES * usual && value - usual >= least;
}

/** Sentences about odd pods, for the first screen. */
export function describeOddPods(rows: readonly PodRow[]): Problem[] {
  return rows
    .filter(({ odd }) => odd.length > 0)
    .slice(0, 5)
    .map((row) => {
      const odd = FIGURES.filter(({ key }) => row.odd.includes(key)).map(({ name, read, format }) => {
        const usual = findMedian(rows.filter((other) => other !== row).map(read));
        return `${name} ${format(read(row))}, ${format(usual)} elsewhere`;
      });
      return { level: 'warn', section: 'pods', text: `Pod ${row.pod} is the odd one: ${odd.join('; ')}.` };
    });
}
