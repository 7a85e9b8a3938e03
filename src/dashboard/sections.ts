// Sections of figures and tables, the same on the page and as text. Runs in the browser and in Node: no `node:*` here.
import type { PoolSnapshot, UpstreamSnapshot } from '../core/snapshot.js';
import { formatBytes, formatDuration, formatMs, formatPercent, formatSpan, grouped } from './format.js';
import type { DashboardData, PodRow, RouteDetail } from './view.js';

export interface Column {
  readonly name: string;
  /** `text` is aligned left; columns of `rank3` are hidden first where there is little room. */
  readonly kind: 'text' | 'number' | `${'text' | 'number'} rank${1 | 2 | 3}`;
}

/** A text, and how the page shows it. */
export type Cell = string | { readonly text: string; readonly as: 'code' | 'route' | 'note' | 'error' | 'bad' | 'odd' };

export interface DataTable {
  readonly caption: string;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
}

export type Figure = readonly [name: string, value: string, state?: string];

export interface PlainSection {
  readonly id: string;
  readonly title: string;
  readonly about: string;
  /** The text in the place of figures and rows where there are none. */
  readonly empty: string;
  readonly figures: readonly Figure[];
  readonly tables: readonly DataTable[];
}

/** A column, and its cell for an item. */
type ItemColumn<T> = readonly [name: string, kind: Column['kind'], cell: (item: T) => Cell];

const table = <T>(caption: string, items: readonly T[], columns: readonly ItemColumn<T>[]): DataTable => ({
  caption,
  columns: columns.map(([name, kind]) => ({ name, kind })),
  rows: items.map((item) => columns.map(([, , cell]) => cell(item))),
});

const code = (text: string): Cell => ({ text, as: 'code' });
const error = (text: string): Cell => ({ text, as: 'error' });
const ago = (now: number, at: number): string => `${formatSpan(now - at)} ago`;
const countBad = (name: string, count: number, state = 'bad'): Figure => [name, grouped(count), count > 0 ? state : ''];

export function describePods(pods: readonly PodRow[], count: number, now: number): PlainSection {
  const marked = ({ odd }: PodRow, key: PodRow['odd'][number], text: string): Cell =>
    odd.includes(key) ? { text, as: 'odd' } : text;
  const rows = table('Pods', pods, [
    ['Pod', 'text', ({ pod }) => code(pod)],
    ['Release', 'text', ({ release }) => release || '–'],
    ['Requests', 'number', ({ requests }) => grouped(requests)],
    ['5xx', 'number', (pod) => marked(pod, 'errors', grouped(pod.errors))],
    ['p95 ms', 'number', (pod) => marked(pod, 'p95Ms', formatMs(pod.p95Ms))],
    ['Event loop', 'number', (pod) => marked(pod, 'loopBusy', formatPercent(pod.loopBusy))],
    ['Throttled', 'number rank2', (pod) => marked(pod, 'throttled', formatPercent(pod.throttled))],
    ['Memory', 'number rank1', (pod) => marked(pod, 'memoryBytes', formatBytes(pod.memoryBytes))],
    ['Written', 'number rank3', ({ at }) => ago(now, at)],
  ]);
  return {
    id: 'pods',
    title: 'Pods, their last minute',
    about: `Marked is what is at least twice the median.${count > pods.length ? ` ${grouped(pods.length)} of ${grouped(count)}, the odd ones first.` : ''}`,
    empty: 'No pod has written yet: each does once a minute.',
    figures: [],
    tables: [rows],
  };
}

/** The sections of one pod. */
export const describeSections = (data: DashboardData): PlainSection[] => [
  describeDeferred(data),
  ...(data.sections.work.length === 0 ? [] : [describeWork(data)]),
  describeUpstreams(data),
  describeUsers(data),
  describeCompression(data),
];

function describeDeferred({ at: now, sections: { defer, failedWork, rejected } }: DashboardData): PlainSection {
  const counts = (['pending', 'running', 'accepted', 'completed', 'stored'] as const).map((name): Figure => [
    name,
    grouped(defer?.[name] ?? 0),
  ]);
  return {
    id: 'deferred',
    title: 'Deferred work',
    about: 'Work after the response, in this process and in a durable store.',
    empty: 'Deferred work is off (`defer: false`).',
    figures:
      defer === null
        ? []
        : [
            ...counts,
            ['waiting for the store', grouped(defer.buffered)],
            countBad('retried', defer.retried, 'warn'),
            countBad('failed', defer.failed),
            countBad('dropped', defer.dropped),
          ],
    tables: [
      table('Refused for good by its store', rejected.toReversed(), [
        ['Work', 'text', ({ name }) => code(name)],
        ['When', 'number', ({ rejectedAt }) => ago(now, rejectedAt)],
        ['Id', 'text rank2', ({ id }) => code(id)],
        ['Error', 'text', (work) => error(work.error)],
      ]),
      table('Failed lately', failedWork.toReversed(), [
        ['Work', 'text', ({ name, durable }) => code(durable ? `${name} (durable)` : name)],
        ['Route', 'text rank3', ({ route }) => ({ text: route ?? '', as: 'note' })],
        ['When', 'number', ({ at }) => ago(now, at)],
        ['Outcome', 'text', ({ outcome }) => outcome],
        ['Attempt', 'number rank2', ({ attempt }) => grouped(attempt)],
        ['Error', 'text', (work) => error(work.error ?? '')],
      ]),
    ],
  };
}

export const describeWork = ({ at: now, sections }: Pick<DashboardData, 'at' | 'sections'>): PlainSection => ({
  id: 'work',
  title: 'Jobs, messages and resolvers',
  about: 'Measured work that no request starts, since the application started.',
  empty: 'No call so far.',
  figures: [],
  tables: [
    table('Jobs, messages and resolvers', sections.work, [
      ['Work', 'text', ({ name }) => code(name)],
      ['Type', 'text rank3', ({ type }) => type],
      ['Calls', 'number', ({ count }) => grouped(count)],
      ['Failed', 'number', ({ failed }) => (failed === 0 ? '0' : { text: grouped(failed), as: 'bad' })],
      ['Overlapped', 'number rank1', ({ overlapped }) => grouped(overlapped)],
      ['Running', 'number rank2', ({ running }) => grouped(running)],
      ['p95 ms', 'number rank2', ({ durationMs }) => formatMs(durationMs.p95)],
      ['Last began', 'number', ({ lastAt }) => (lastAt === 0 ? 'never' : ago(now, lastAt))],
    ]),
  ],
});

/** `'10/10, 34 wait'`: connections in use, their maximum, and requests that wait for one. */
function formatPool({ max, total, idle, waiting }: PoolSnapshot): Cell {
  const used = total === null || idle === null ? '–' : grouped(total - idle);
  const connections = max === null ? used : `${used}/${grouped(max)}`;
  return waiting ? { text: `${connections}, ${grouped(waiting)} wait`, as: 'bad' } : connections;
}

export function describeUpstreams({ sections: { upstream } }: Pick<DashboardData, 'sections'>): PlainSection {
  const pools: ItemColumn<UpstreamSnapshot> = [
    'Connections',
    'number rank1',
    ({ pool }) => (pool === null ? '' : formatPool(pool)),
  ];
  return {
    id: 'upstreams',
    title: 'Upstreams',
    about: 'Calls that the application waits for, since it started.',
    empty: 'No call to another server so far, or upstreams are off (`upstream: false`).',
    figures: [],
    tables: [
      table('Upstreams', upstream, [
        ['Target', 'text', ({ target }) => code(target)],
        ['Calls', 'number', ({ calls }) => grouped(calls)],
        ['Errors', 'number', ({ errors }) => (errors === 0 ? '0' : { text: grouped(errors), as: 'bad' })],
        ['In flight', 'number rank2', ({ inFlight }) => grouped(inFlight)],
        ['p50 ms', 'number rank1', ({ durationMs }) => formatMs(durationMs.p50)],
        ['p95 ms', 'number', ({ durationMs }) => formatMs(durationMs.p95)],
        ['p99 ms', 'number rank1', ({ durationMs }) => formatMs(durationMs.p99)],
        ['Longest ms', 'number rank2', ({ durationMs }) => formatMs(durationMs.max)],
        ...(upstream.some(({ pool }) => pool !== null) ? [pools] : []),
        ['Most for', 'text rank3', ({ routes }) => ({ text: nameFirst(routes), as: 'note' })],
      ]),
    ],
  };
}

const nameFirst = (routes: readonly { route: string }[]): string =>
  routes
    .slice(0, 2)
    .map(({ route }) => route)
    .join(', ');

const describeUsers = ({ sections }: DashboardData): PlainSection => ({
  id: 'users',
  title: 'Users, the last hour',
  about: "Users who took most of the application's time.",
  empty:
    'No request came from a known user. A user is `request.user.id`, unless the option `unit` tells whom a request is for.',
  figures: [],
  tables: [
    table('Users', sections.users, [
      ['User', 'text', ({ unit }) => code(unit)],
      ['Route', 'text', ({ route }) => ({ text: route, as: 'route' })],
      ['Requests', 'number', ({ count }) => grouped(count)],
      ['Total time', 'number', ({ totalMs }) => formatDuration(totalMs)],
      ['Of it upstream', 'number rank2', (use) => formatPercent(use.upstreamMs / Math.max(use.totalMs, 0.001))],
    ]),
  ],
});

function describeCompression({ sections: { compression: stats } }: DashboardData): PlainSection {
  const share = (part: number, whole: number): string => formatPercent(whole === 0 ? 0 : part / whole);
  return {
    id: 'compression',
    title: 'Compression and shared answers',
    about: 'Bytes that did not have to travel.',
    empty: 'Compression is off (`compression: false`).',
    figures:
      stats === null
        ? []
        : [
            ['responses', grouped(stats.responses)],
            ['compressed', share(stats.compressed, stats.responses)],
            ['from the cache', grouped(stats.cacheHits)],
            ['before', formatBytes(stats.bytesIn)],
            ['after', formatBytes(stats.bytesOut)],
            ['saved', share(stats.bytesIn - stats.bytesOut, stats.bytesIn)],
            ['cache', formatBytes(stats.cacheBytes)],
          ],
    tables: [],
  };
}

export const describeExperiments = ({ sections }: DashboardData): PlainSection => ({
  id: 'experiments',
  title: 'Experiments',
  about: 'Where the difference lies, with 95 % confidence.',
  empty: 'No gate has been checked so far, or experiments are off.',
  figures: [],
  tables: [
    table('Experiments', sections.experiments, [
      ['Gate', 'text', ({ gate }) => code(gate)],
      ['Answer', 'text', ({ text }) => text],
      ['Caveats', 'text rank1', ({ caveats }) => ({ text: caveats.join('; '), as: 'note' })],
    ]),
  ],
});

/** Calls and users of one route. */
export const describeDetail = ({ upstream, users }: RouteDetail): DataTable[] => [
  table('Upstreams of this route', upstream, [
    ['Upstream', 'text', ({ target }) => code(target)],
    ['Calls a request', 'number', ({ callsPerRequest }) => callsPerRequest.toFixed(callsPerRequest < 10 ? 1 : 0)],
    ['Time a request', 'number', ({ wallMs }) => formatDuration(wallMs)],
  ]),
  table('Users of this route in the last hour', users, [
    ['User', 'text', ({ unit }) => code(unit)],
    ['Requests', 'number', ({ count }) => grouped(count)],
    ['Total time', 'number', ({ totalMs }) => formatDuration(totalMs)],
  ]),
];
