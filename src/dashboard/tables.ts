// Tables of the page and of its text, from the same rows. Runs in both places: no `node:*` here.
import type { CompressionStats, PoolSnapshot, UpstreamSnapshot, UserUse } from '../core/snapshot.js';
import type { Rejected } from '../ports/rejected.js';
import { formatBytes, formatDuration, formatMs, formatPercent, formatSpan, grouped } from './format.js';
import type { FailedWork, PodRow } from './view.js';

export interface Column {
  readonly name: string;
  /** Text columns are aligned left. */
  readonly isText?: boolean;
  /** Hidden where there is little room: 1 goes last. */
  readonly rank?: 1 | 2 | 3;
}

/** A text, and how the page shows it. */
export type Cell = string | { readonly text: string; readonly as: 'code' | 'route' | 'note' | 'error' | 'bad' | 'odd' };

export interface DataTable {
  readonly caption: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
}

const text = (name: string, rank?: Column['rank']): Column => ({ name, isText: true, ...(rank && { rank }) });
const number = (name: string, rank?: Column['rank']): Column => ({ name, ...(rank && { rank }) });
const code = (value: string): Cell => ({ text: value, as: 'code' });
const route = (value: string): Cell => ({ text: value, as: 'route' });
const ago = (now: number, at: number): string => `${formatSpan(now - at)} ago`;

export const podsTable = (pods: readonly PodRow[], now: number): DataTable => ({
  caption: 'Pods',
  columns: [
    text('Pod'),
    text('Release'),
    number('Requests'),
    number('5xx'),
    number('p95 ms'),
    number('Event loop'),
    number('Throttled', 2),
    number('Memory', 1),
    number('Written', 3),
  ],
  rows: pods.map((pod) => {
    const marked = (key: PodRow['odd'][number], value: string): Cell =>
      pod.odd.includes(key) ? { text: value, as: 'odd' } : value;
    return [
      code(pod.pod),
      pod.release === '' ? '–' : pod.release,
      grouped(pod.requests),
      marked('errors', grouped(pod.errors)),
      marked('p95Ms', formatMs(pod.p95Ms)),
      marked('loopBusy', formatPercent(pod.loopBusy)),
      marked('throttled', formatPercent(pod.throttled)),
      marked('memoryBytes', formatBytes(pod.memoryBytes)),
      ago(now, pod.at),
    ];
  }),
});

/** `10/10, 34 wait` */
function formatPool({ max, total, idle, waiting }: PoolSnapshot): Cell {
  const used = total === null || idle === null ? '–' : grouped(total - idle);
  const connections = max === null ? used : `${used}/${grouped(max)}`;
  return waiting === null || waiting === 0
    ? connections
    : { text: `${connections}, ${grouped(waiting)} wait`, as: 'bad' };
}

export function upstreamsTable(targets: readonly UpstreamSnapshot[]): DataTable {
  const hasPools = targets.some(({ pool }) => pool !== null);
  return {
    caption: 'Upstreams',
    columns: [
      text('Target'),
      number('Calls'),
      number('Errors'),
      number('In flight', 2),
      number('p50 ms', 1),
      number('p95 ms'),
      number('p99 ms', 1),
      number('Longest ms', 2),
      ...(hasPools ? [text('Connections', 1)] : []),
      text('Most for', 3),
    ],
    rows: targets.map(({ target, calls, errors, inFlight, durationMs: { p50, p95, p99, max }, pool, routes }) => [
      code(target),
      grouped(calls),
      errors === 0 ? '0' : { text: grouped(errors), as: 'bad' },
      grouped(inFlight),
      ...[p50, p95, p99, max].map(formatMs),
      ...(hasPools ? [pool === null ? '' : formatPool(pool)] : []),
      {
        text: routes
          .slice(0, 2)
          .map((caller) => caller.route)
          .join(', '),
        as: 'note',
      },
    ]),
  };
}

export const usersTable = (users: readonly UserUse[]): DataTable => ({
  caption: 'Users',
  columns: [text('User'), text('Route'), number('Requests'), number('Total time'), number('Of it upstream', 2)],
  rows: users.map(({ unit, route: name, count, totalMs, upstreamMs }) => [
    code(unit),
    route(name),
    grouped(count),
    formatDuration(totalMs),
    formatPercent(totalMs === 0 ? 0 : upstreamMs / totalMs),
  ]),
});

export const formatSaved = (bytesIn: number, bytesOut: number): string =>
  formatPercent(bytesIn === 0 ? 0 : 1 - bytesOut / bytesIn);

export const compressionTable = ({ routes }: CompressionStats): DataTable => ({
  caption: 'Compression by route',
  columns: [
    text('Route'),
    number('Compressed'),
    number('From the cache', 2),
    number('Before', 1),
    number('After', 1),
    number('Saved'),
  ],
  rows: routes.map(({ method, route: pattern, compressed, cacheHits, bytesIn, bytesOut }) => [
    route(`${method} ${pattern}`),
    grouped(compressed),
    grouped(cacheHits),
    formatBytes(bytesIn),
    formatBytes(bytesOut),
    formatSaved(bytesIn, bytesOut),
  ]),
});

/** The latest first. */
export const failedTable = (works: readonly FailedWork[], now: number): DataTable => ({
  caption: 'Work that failed lately',
  columns: [text('Work'), text('Route', 3), number('When'), text('Outcome'), number('Attempt', 2), text('Error')],
  rows: works
    .toReversed()
    .map(({ name, route: caller, durable, at, outcome, attempt, error }) => [
      code(durable ? `${name} (durable)` : name),
      { text: caller ?? '', as: 'note' },
      ago(now, at),
      outcome,
      grouped(attempt),
      { text: error ?? '', as: 'error' },
    ]),
});

/** The latest first. */
export const rejectedTable = (rejected: readonly Rejected[], now: number): DataTable => ({
  caption: 'Work that its store has refused for good',
  columns: [text('Work'), number('When'), text('Id', 2), text('Error')],
  rows: rejected
    .toReversed()
    .map(({ id, name, rejectedAt, error }) => [
      code(name),
      ago(now, rejectedAt),
      code(id),
      { text: error, as: 'error' },
    ]),
});
