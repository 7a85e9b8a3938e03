import { findMedian } from '../core/statistics/median.js';
import type { HistoryReader, PodMinute } from '../ports/history.js';
import { formatBytes, formatDuration, formatPercent } from './format.js';
import { readPoints, NO_PAST } from './past.js';
import type { Sample } from './pod-view.js';
import { describeVerdicts } from './problems.js';
import { makeRow, MAX_ROUTES, sumTotals } from './route-rows.js';
import type { Past, PodRow, Problem, RouteDetail, Sections } from './view.js';

const MINUTE_MS = 60_000;
/** Routes of all pods are those of the last hour: no pod knows when the fleet began. */
const SPAN_MS = 60 * MINUTE_MS;
/** Rows of pods: a page with more is slow to read. */
const MAX_PODS = 250;

export const NO_SECTIONS: Sections = {
  now: [],
  eventLoop: null,
  blocks: [],
  resources: null,
  defer: null,
  failedWork: [],
  rejected: [],
  upstream: [],
  users: [],
  work: [],
  compression: null,
  experiments: [],
  past: NO_PAST,
};
const NO_DETAIL = { statuses: {}, distribution: [], users: [], upstream: [] };

/** Reads the figures of all pods from a shared history: each pod reads the same. Null while its store is away. */
export async function readFleet(
  history: HistoryReader,
  nameUser: (userId: string) => string,
  readPast: (route: string | null) => Promise<Past>,
): Promise<Sample | null> {
  const at = Date.now();
  const found = await history.routes({ from: at - SPAN_MS, to: at });
  if (found === null) return null;
  const routes = [...found];
  const bounds = new Set(routes.flatMap(([, { over }]) => over.map(({ ms }) => ms)));
  const overMs = [...bounds].sort((a, b) => a - b);
  const rows = routes.map(([name, figures]) => {
    const { upstreamMs, poolWaitMs, ownMs, waitMs } = figures;
    const time = upstreamMs === null ? null : ([ownMs, upstreamMs, poolWaitMs ?? 0, waitMs ?? 0] as const);
    return makeRow({ id: name, name }, figures, overMs, time);
  });
  const minutes = await history.pods();
  const usual = findUsual(minutes);
  const all = markOddPods(minutes, usual);
  const pods = all.length > MAX_PODS ? all.toSorted((a, b) => b.odd.length - a.odd.length).slice(0, MAX_PODS) : all;
  const now = [...describeVerdicts(history.verdicts(), nameUser), ...describeOddPods(all, usual)];
  const { rows: traffic } = await readPoints(history, MINUTE_MS, { route: null, own: false });
  const totals = sumTotals(routes.map(([name, figures]) => ({ ...figures, method: name.split(' ', 1)[0]! })));
  const sections = { ...NO_SECTIONS, now, past: await readPast(null) };
  return {
    shown: { at, pods, podCount: all.length, overMs, totals, traffic: [...traffic], container: [], sections },
    rows: rows.slice(0, MAX_ROUTES),
    describe: async (route): Promise<RouteDetail | null> => {
      const row = rows.find(({ id }) => id === route);
      return row === undefined ? null : { ...NO_DETAIL, row, past: await readPast(row.name) };
    },
  };
}

interface Figure {
  readonly key: 'p95Ms' | 'errors' | 'loopBusy' | 'throttled' | 'memoryBytes';
  readonly name: string;
  /** A smaller difference is none. */
  readonly least: number;
  readonly format: (value: number) => string;
}

const FIGURES: readonly Figure[] = [
  { key: 'p95Ms', name: 'p95', least: 20, format: formatDuration },
  { key: 'errors', name: 'errors', least: 0.02, format: formatPercent },
  { key: 'loopBusy', name: 'event loop', least: 0.2, format: formatPercent },
  { key: 'throttled', name: 'throttling', least: 0.05, format: formatPercent },
  { key: 'memoryBytes', name: 'memory', least: 128 * 2 ** 20, format: formatBytes },
];
const MIN_PODS = 3;
const TIMES = 2;

/** Errors count as a share of the requests. */
const read = (pod: PodMinute, key: Figure['key']): number =>
  key === 'errors' ? pod.errors / Math.max(1, pod.requests) : pod[key];

/** The median of each figure over all pods. */
type Usual = Readonly<Record<Figure['key'], number>>;
const findUsual = (pods: readonly PodMinute[]): Usual =>
  Object.fromEntries(FIGURES.map(({ key }) => [key, findMedian(pods.map((pod) => read(pod, key)))])) as Usual;

/** Marks figures that are at least twice the median. By name. */
function markOddPods(pods: readonly PodMinute[], usual: Usual): PodRow[] {
  const findOdd = (pod: PodMinute): Figure['key'][] =>
    FIGURES.filter(({ key, least }) => {
      const value = read(pod, key);
      return value >= TIMES * usual[key] && value - usual[key] >= least;
    }).map(({ key }) => key);
  return pods
    .toSorted((a, b) => a.pod.localeCompare(b.pod) || a.instance.localeCompare(b.instance))
    .map((pod) => ({ ...pod, odd: pods.length < MIN_PODS ? [] : findOdd(pod) }));
}

/** Sentences about odd pods, for the first screen. */
function describeOddPods(rows: readonly PodRow[], usual: Usual): Problem[] {
  const odd = rows.filter((row) => row.odd.length > 0).slice(0, 5);
  return odd.map((row) => {
    const figures = FIGURES.filter(({ key }) => row.odd.includes(key)).map(
      ({ key, name, format }) => `${name} ${format(read(row, key))}, ${format(usual[key])} in the median`,
    );
    return { level: 'warn', section: 'pods', text: `Pod ${row.pod} is the odd one: ${figures.join('; ')}.` };
  });
}
