import { printable } from '../core/printable.js';
import { describeResources } from '../core/resource-text.js';
import {
  counted,
  findPlace,
  formatDuration,
  formatMs,
  formatPercent,
  formatRate,
  formatSpan,
  grouped,
} from './format.js';
import { MAX_CURL } from './recent-records.js';
import { describePods, describeSections, type Cell, type DataTable, type PlainSection } from './sections.js';
import type { BlockRow, DashboardData, Past, RouteRow } from './view.js';

const SHOWN_ROWS = 30;
const SHOWN_BLOCKS = 10;
/** With a line that repeats them, and their stack. */
const EXPLAINED_BLOCKS = 3;
const MAX_CELL = 60;
/** Causes that are no request's. */
const NOBODYS: Readonly<Partial<Record<BlockRow['cause'], string>>> = {
  'not-scheduled': 'the operating system',
  'pile-up': 'many short tasks',
  gc: 'garbage collection',
};
/** Rows of five minutes each. */
const PAST_ROWS = 12;

/** The page for a terminal. What came from outside cannot command it. `past`: of `route`, or of all. */
export function formatPage(data: DashboardData, past: Past, route: string | null): string {
  const { scope, pods, podCount, at, sections } = data;
  const isFleet = scope === 'fleet';
  const ofPod = (): string[] => [
    titled('Blocks', formatBlocks(data)),
    titled('Container', sections.resources === null ? 'off' : describeResources(sections.resources)),
    ...describeSections(data).map(formatSection),
    titled('Experiments', sections.experiments.map(({ text }) => line(text)).join('\n')),
  ];
  const parts = [
    formatHead(data),
    titled('Now', formatNow(data)),
    pods === null ? '' : formatSection(describePods(pods, podCount, at)),
    titled(isFleet ? 'Requests of all pods, the last hour' : 'Requests', formatRequests(data)),
    titled('The last hour', formatPast(past, route), route === null ? '' : ` OF ${line(route)}`),
    ...(isFleet ? [] : ofPod()),
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

function formatHead({ scope, podCount, process, at, totals, traffic, sections }: DashboardData): string {
  // Traffic between two requests for this text begins with the second: the first has the last step of the history.
  const isKnown = totals !== null && traffic.at(-1)?.[1] !== null;
  const points = isKnown ? traffic : totals === null ? [] : sections.past.rows;
  const [, perSecond = null, errors = null, , p95 = null] = points.at(-1) ?? [];
  const pod = `${process.pod} · release ${process.release ?? 'unknown'} · up ${formatSpan(at - process.startedAt)} · Node ${process.node}, pid ${process.pid}`;
  // No pod has written its first minute yet.
  const known = podCount === 0 ? 'pods' : counted(podCount, 'pod');
  const all = `All ${known}, as ${process.pod} shows them (?scope=pod: itself alone)`;
  const now = [
    `${formatRate(perSecond)} requests/s`,
    `${formatRate(errors)} errors/s`,
    `p95 ${formatDuration(p95)}`,
    totals === null || scope === 'fleet' ? '' : `${totals.inFlight} in flight`,
    sections.eventLoop === null ? '' : `event loop ${formatPercent(sections.eventLoop.utilization)} busy`,
  ];
  return `${line(scope === 'fleet' ? all : pod)}\n${now.filter((part) => part !== '').join(' · ')}`;
}

function formatNow({ sections: { now }, totals }: DashboardData): string {
  if (now.length === 0) return totals === null ? 'Nothing is known to be wrong.' : 'Nothing is wrong.';
  return now.map(({ level, text }) => `${level === 'bad' ? '!' : '-'} ${line(text)}`).join('\n');
}

function formatRequests({ routes, overMs, totals }: DashboardData): string {
  if (totals === null) return 'off';
  if (routes.length === 0) return 'none yet';
  const head = ['route', 'count', '5xx', 'p50 ms', 'p95 ms', 'p99 ms', 'own / upstream / pool / loop wait / idle ms'];
  const rows = routes
    .slice(0, SHOWN_ROWS)
    .map(({ name, count, errors = 0, ms, time, over = overMs.map(() => 0) }: RouteRow) => [
      name,
      grouped(count),
      grouped(errors),
      ...ms.slice(1, 4).map(formatMs),
      time === undefined ? '–' : time.map(formatMs).join(' / '),
      ...over.map(grouped),
    ]);
  const left = totals.routes - rows.length;
  const rest = left === 0 ? '' : `\nand ${grouped(left)} of ${counted(totals.routes, 'route')}`;
  return `${alignCells([...head, ...overMs.map((ms) => `>${formatDuration(ms)}`)], rows)}${rest}`;
}

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
  return alignCells(head, cells) + marks.join('');
}

/** `14:05`: the terminal may be elsewhere than the server. */
const formatTime = (at: number): string => new Date(at).toISOString().slice(11, 16);

function formatBlocks({ sections: { blocks, eventLoop }, at: now }: DashboardData): string {
  if (blocks.length === 0) return eventLoop === null ? 'off' : 'none';
  const nameRoute = ({ route, proven, cause }: BlockRow): string =>
    route === null ? (NOBODYS[cause] ?? 'unknown') : proven ? route : `${route} (suspect)`;
  const shown = blocks.slice(0, SHOWN_BLOCKS);
  const rows = shown.map((block) => [
    `${formatSpan(now - block.at)} ago`,
    grouped(block.count),
    formatMs(block.maxMs),
    nameRoute(block),
    findPlace(block) ?? block.cause,
    grouped(block.waited),
  ]);
  const repeats = shown.filter(({ curl, stack }) => curl !== null || stack.length > 0).slice(0, EXPLAINED_BLOCKS);
  const explained = repeats.map((block) => {
    const lines = [nameRoute(block), ...(block.curl === null ? [] : [block.curl]), ...block.stack];
    return `\n${lines.map((text) => printable(text, MAX_CURL)).join('\n  ')}`;
  });
  return [alignCells(['last', 'times', 'longest ms', 'who', 'where', 'waited'], rows), ...explained].join('\n');
}

function formatSection({ title, empty, figures, tables }: PlainSection): string {
  const filled = tables.filter(({ rows }) => rows.length > 0);
  const isNamed = tables.length > 1;
  const parts = [
    figures.map(([name, value]) => `${name} ${value}`).join(', '),
    ...filled.map((table) => `${isNamed ? `${table.caption}:\n` : ''}${formatTable(table)}`),
  ].filter((part) => part !== '');
  return titled(title, parts.join('\n') || empty);
}

function formatTable({ columns, rows }: DataTable): string {
  const format = (cell: Cell): string =>
    typeof cell === 'string' ? cell : cell.as === 'odd' ? `${cell.text} !` : cell.text;
  const head = columns.map(({ name }) => name);
  const left = rows.length - SHOWN_ROWS;
  const cells = rows.slice(0, SHOWN_ROWS).map((row) => row.map(format));
  return `${alignCells(head, cells)}${left > 0 ? `\nand ${grouped(left)} more` : ''}`;
}

/** `name` is the application's: a route in capitals is another route. */
const titled = (title: string, text: string, name = ''): string =>
  text === '' ? '' : `${title.toUpperCase()}${name}\n${text}`;
const line = (text: string): string => printable(text, 400);

/** Columns as wide as their widest cell; numbers to the right. */
function alignCells(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => printable(cell, MAX_CELL)));
  const isNumber = head.map((_, column) => rows.every((row) => /^[–≤≥\d.,/ ]+$/.test(row[column]!)));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  const align = (cell: string, column: number): string =>
    isNumber[column] ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!);
  return cells.map((row) => row.map(align).join('  ').trimEnd()).join('\n');
}
