import { printable } from '../core/printable.js';
import { describeResources } from '../core/resource-text.js';
import {
  formatBytes,
  counted,
  formatDuration,
  grouped,
  findIdleMs,
  formatMs,
  formatPercent,
  findPlace,
  formatRate,
  formatSpan,
} from './format.js';
import { MAX_CURL } from './recent-records.js';
import {
  failedTable,
  podsTable,
  rejectedTable,
  upstreamsTable,
  usersTable,
  type Cell,
  type DataTable,
} from './tables.js';
import type { BlockRow, DashboardData, Past, RouteRow, Sections } from './view.js';

const SHOWN_ROUTES = 30;
const SHOWN_PODS = 50;
const SHOWN_BLOCKS = 10;
const SHOWN_FAILED = 5;
const SHOWN_UPSTREAMS = 20;
const SHOWN_USERS = 10;
/** With a line that repeats them, and their stack. */
const EXPLAINED_BLOCKS = 3;
const MAX_CELL = 60;
/** Rows of five minutes each. */
const PAST_ROWS = 12;

/** The page for a terminal. What came from outside cannot command it. `past`: of `route`, or of all. */
export function formatPage(data: DashboardData, past: Past, route: string | null): string {
  const parts = [
    formatHead(data),
    titled('Now', formatNow(data)),
    titled('Pods, their last minute', formatPods(data)),
    titled(data.scope === 'fleet' ? 'Requests of all pods, the last hour' : 'Requests', formatRequests(data)),
    titled('The last hour', formatPast(past, route), route === null ? '' : ` OF ${line(route)}`),
    ...(data.scope === 'fleet' ? [] : formatPodSections(data)),
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

/** Sections of one pod alone. */
function formatPodSections(data: DashboardData): string[] {
  const { sections } = data;
  return [
    titled('Blocks', formatBlocks(data)),
    titled('Container', sections.resources === null ? 'off' : describeResources(sections.resources)),
    titled('Deferred work', formatDefer(sections, data.at)),
    titled('Upstreams', formatTable(upstreamsTable(sections.upstream.slice(0, SHOWN_UPSTREAMS)))),
    titled('Users, the last hour', formatTable(usersTable(sections.users.slice(0, SHOWN_USERS)))),
    titled('Compression', formatCompression(sections)),
    titled('Experiments', sections.experiments.map(({ text }) => line(text)).join('\n')),
  ];
}

function formatHead({ scope, pods, process, at, totals, traffic, sections }: DashboardData): string {
  const [, perSecond = null, errorsPerSecond = null, , p95 = null] = traffic.at(-1) ?? [];
  const who = `${process.pod} · release ${process.release ?? 'unknown'} · up ${formatSpan(at - process.startedAt)} · Node ${process.node}, pid ${process.pid}`;
  const all = `All ${counted(pods?.length ?? 0, 'pod')}, as ${process.pod} tells of them (?scope=pod: of itself)`;
  const now = [
    `${formatRate(perSecond)} requests/s`,
    `${formatRate(errorsPerSecond)} errors/s`,
    `p95 ${formatDuration(p95)}`,
    totals === null || scope === 'fleet' ? '' : `${totals.inFlight} in flight`,
    sections.eventLoop === null ? '' : `event loop ${formatPercent(sections.eventLoop.utilization)} busy`,
  ];
  return `${line(scope === 'fleet' ? all : who)}\n${now.filter((part) => part !== '').join(' · ')}`;
}

function formatNow({ sections: { now }, totals }: DashboardData): string {
  if (now.length === 0) return totals === null ? 'Nothing is known to be wrong.' : 'Nothing is wrong.';
  return now.map(({ level, text }) => `${level === 'bad' ? '!' : '-'} ${line(text)}`).join('\n');
}

function formatPods({ pods, at }: DashboardData): string {
  if (pods === null) return '';
  const left = pods.length - SHOWN_PODS;
  const rows = formatTable(podsTable(pods.slice(0, SHOWN_PODS), at));
  return `${rows || 'none has written yet'}${left > 0 ? `\nand ${counted(left, 'more pod')}` : ''}`;
}

function formatRequests({ routes, overMs, other, totals }: DashboardData): string {
  if (totals === null) return 'off';
  if (routes.length === 0) return 'none yet';
  const head = ['route', 'count', '5xx', 'p50 ms', 'p95 ms', 'p99 ms', 'own / upstream / pool / loop wait / idle ms'];
  const shown = [...routes].sort((a, b) => b.count * b.ms[0] - a.count * a.ms[0]).slice(0, SHOWN_ROUTES);
  const rows = shown.map((row) => {
    const { name, count, errors = 0, ms, over = overMs.map(() => 0) } = row;
    return [
      name,
      grouped(count),
      grouped(errors),
      ...ms.slice(1, 4).map(formatMs),
      formatSplit(row),
      ...over.map(grouped),
    ];
  });
  const left = routes.length - shown.length + (other?.routes ?? 0);
  const rest = left === 0 ? '' : `\nand ${grouped(left)} of ${counted(totals.routes, 'route')}`;
  return `${table([...head, ...overMs.map((ms) => `>${formatDuration(ms)}`)], rows)}${rest}`;
}

/** Means of a request. */
const formatSplit = (row: RouteRow): string =>
  row.time === undefined ? '–' : [...row.time, findIdleMs(row)].map(formatMs).join(' / ');

function formatPast({ rows, releases }: Past, route: string | null): string {
  const shown = rows.slice(-PAST_ROWS);
  if (shown.every(([, perSecond]) => perSecond === 0))
    return route === null ? '' : 'No request of it. Its name is as above: GET /users/:id';
  const head = ['since (UTC)', 'req/s', '5xx/s', 'p50 ms', 'p95 ms', 'p99 ms', 'last week: req/s', 'p95 ms'];
  const cells = shown.map(([at, requests, errors, p50, p95, p99, weekRequests, weekP95]) => [
    formatTime(at),
    ...[requests, errors].map(formatRate),
    ...[p50, p95, p99].map(formatMs),
    formatRate(weekRequests),
    formatMs(weekP95),
  ]);
  const marks = releases.map(({ at, release }) => `\nrelease ${line(release)} since ${formatTime(at)}`);
  return table(head, cells) + marks.join('');
}

/** `14:05`: the terminal may be elsewhere than the server. */
const formatTime = (at: number): string => new Date(at).toISOString().slice(11, 16);

function formatBlocks({ sections: { blocks, eventLoop }, at: now }: DashboardData): string {
  if (blocks.length === 0) return eventLoop === null ? 'off' : 'none';
  const who = ({ route, proven }: BlockRow): string =>
    route === null ? 'unknown' : proven ? route : `${route} (suspect)`;
  const shown = blocks.slice(0, SHOWN_BLOCKS);
  const rows = shown.map((block) => [
    `${formatSpan(now - block.at)} ago`,
    grouped(block.count),
    formatMs(block.maxMs),
    who(block),
    findPlace(block) ?? block.cause,
    grouped(block.waited),
  ]);
  const repeats = shown.filter(({ curl, stack }) => curl !== null || stack.length > 0).slice(0, EXPLAINED_BLOCKS);
  const explained = repeats.map((block) => {
    const lines = [who(block), ...(block.curl === null ? [] : [block.curl]), ...block.stack];
    return `\n${lines.map((text) => printable(text, MAX_CURL)).join('\n  ')}`;
  });
  return [table(['last', 'times', 'longest ms', 'who', 'where', 'waited'], rows), ...explained].join('\n');
}

function formatDefer({ defer, failedWork, rejected }: Sections, now: number): string {
  if (defer === null) return 'off';
  const counts = Object.entries(defer).map(([name, count]) => `${name} ${grouped(count as number)}`);
  const tables = [failedTable(failedWork.slice(-SHOWN_FAILED), now), rejectedTable(rejected.slice(-SHOWN_FAILED), now)];
  const parts = tables.map((one) => (one.rows.length === 0 ? '' : `${one.caption}:\n${formatTable(one)}`));
  return [counts.join(', '), ...parts].filter((part) => part !== '').join('\n');
}

function formatCompression({ compression }: Sections): string {
  if (compression === null || compression.responses === 0) return '';
  const { responses, compressed, cacheHits, bytesIn, bytesOut } = compression;
  return `${grouped(compressed)} of ${grouped(responses)} responses, ${formatBytes(bytesIn)} became ${formatBytes(bytesOut)}, ${grouped(cacheHits)} from the cache`;
}

/** `name` is the application's: a route in capitals is another route. */
const titled = (title: string, text: string, name = ''): string =>
  text === '' ? '' : `${title.toUpperCase()}${name}\n${text}`;
const line = (text: string): string => printable(text, 400);

function formatTable({ columns, rows }: DataTable): string {
  const write = (cell: Cell): string =>
    typeof cell === 'string' ? cell : cell.as === 'odd' ? `${cell.text} !` : cell.text;
  return table(
    columns.map(({ name }) => name),
    rows.map((row) => row.map(write)),
  );
}

/** Columns as wide as their widest cell; numbers to the right. `''` without rows. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const cells = [head, ...rows].map((row) => row.map((cell) => printable(cell, MAX_CELL)));
  const isNumber = head.map((_, column) => rows.every((row) => /^[–≤≥\d.,/ ]+$/.test(row[column]!)));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => (isNumber[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
