import { printable } from '../core/printable.js';
import { describeResources } from '../core/resource-text.js';
import {
  bytesOf,
  counted,
  durationOf,
  grouped,
  idleOf,
  msOf,
  ownOf,
  percentOf,
  placeOf,
  rateOf,
  spanOf,
} from './format.js';
import { MAX_CURL } from './recent-records.js';
import type { BlockRow, DashboardData, Past, RouteRow, Sections } from './view.js';

const SHOWN_ROUTES = 30;
const SHOWN_PODS = 50;
const SHOWN_BLOCKS = 10;
/** With a line that repeats them, and their stack. */
const EXPLAINED_BLOCKS = 3;
const MAX_CELL = 60;
/** Rows of five minutes each. */
const PAST_ROWS = 12;

/** The page for a terminal. What came from outside cannot command it. `past`: of `route`, or of all. */
export function textOf(data: DashboardData, past: Past, route: string | null): string {
  const parts = [
    headOf(data),
    titled('Now', nowOf(data)),
    titled('Pods, their last minute', podsOf(data)),
    titled(data.scope === 'fleet' ? 'Requests of all pods, the last hour' : 'Requests', requestsOf(data)),
    titled('The last hour', pastOf(past, route), route === null ? '' : ` OF ${line(route)}`),
    ...(data.scope === 'fleet' ? [] : ofPod(data)),
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

/** Sections of one pod alone. */
function ofPod(data: DashboardData): string[] {
  const { sections } = data;
  return [
    titled('Blocks', blocksOf(data)),
    titled('Container', sections.resources === null ? 'off' : describeResources(sections.resources)),
    titled('Deferred work', deferOf(sections, data.at)),
    titled('Upstreams', upstreamsOf(sections)),
    titled('Users, the last hour', usersOf(sections)),
    titled('Compression', compressionOf(sections)),
    titled('Experiments', sections.experiments.map(({ text }) => line(text)).join('\n')),
  ];
}

function headOf({ scope, pods, process, at, totals, traffic, sections }: DashboardData): string {
  const [, perSecond = null, errorsPerSecond = null, , p95 = null] = traffic.at(-1) ?? [];
  const who = `${process.pod} · release ${process.release ?? 'unknown'} · up ${spanOf(at - process.startedAt)} · Node ${process.node}, pid ${process.pid}`;
  const all = `All ${counted(pods?.length ?? 0, 'pod')}, as ${process.pod} tells of them (?scope=pod: of itself)`;
  const now = [
    `${rateOf(perSecond)} requests/s`,
    `${rateOf(errorsPerSecond)} errors/s`,
    `p95 ${durationOf(p95)}`,
    totals === null || scope === 'fleet' ? '' : `${totals.inFlight} in flight`,
    sections.eventLoop === null ? '' : `event loop ${percentOf(sections.eventLoop.utilization)} busy`,
  ];
  return `${line(scope === 'fleet' ? all : who)}\n${now.filter((part) => part !== '').join(' · ')}`;
}

function nowOf({ sections: { now }, totals }: DashboardData): string {
  if (now.length === 0) return totals === null ? 'Nothing is known to be wrong.' : 'Nothing is wrong.';
  return now.map(({ level, text }) => `${level === 'bad' ? '!' : '-'} ${line(text)}`).join('\n');
}

function podsOf({ pods, at }: DashboardData): string {
  if (pods === null) return '';
  const head = ['pod', 'release', 'requests', '5xx', 'p95 ms', 'loop', 'throttled', 'memory', 'told', 'odd'];
  const rows = pods
    .slice(0, SHOWN_PODS)
    .map((pod) => [
      pod.pod,
      pod.release,
      grouped(pod.requests),
      grouped(pod.errors),
      msOf(pod.p95Ms),
      percentOf(pod.loopBusy),
      percentOf(pod.throttled),
      bytesOf(pod.memoryBytes),
      `${spanOf(at - pod.at)} ago`,
      pod.odd.length > 0 ? '!' : '',
    ]);
  const left = pods.length - rows.length;
  return `${table(head, rows) || 'none has told anything yet'}${left > 0 ? `\nand ${counted(left, 'more pod')}` : ''}`;
}

function requestsOf({ routes, overMs, other, totals }: DashboardData): string {
  if (totals === null) return 'off';
  if (routes.length === 0) return 'none yet';
  const head = ['route', 'count', '5xx', 'p50 ms', 'p95 ms', 'p99 ms', 'own / upstream / loop wait / idle ms'];
  const shown = [...routes].sort((a, b) => b.count * b.ms[0] - a.count * a.ms[0]).slice(0, SHOWN_ROUTES);
  const rows = shown.map((row) => {
    const { name, count, errors = 0, ms, over = overMs.map(() => 0) } = row;
    return [name, grouped(count), grouped(errors), ...ms.slice(1, 4).map(msOf), splitOf(row), ...over.map(grouped)];
  });
  const left = routes.length - shown.length + (other?.routes ?? 0);
  const rest = left === 0 ? '' : `\nand ${grouped(left)} of ${counted(totals.routes, 'route')}`;
  return `${table([...head, ...overMs.map((ms) => `>${durationOf(ms)}`)], rows)}${rest}`;
}

/** Means of a request: own work, upstream, waiting for the loop (`≤`: some of it may be own work), idle. */
function splitOf(row: RouteRow): string {
  if (row.time === undefined) return '–';
  const [, upstream, wait] = row.time;
  const { ms, isWhole } = ownOf(row);
  const [least, most] = isWhole ? ['', ''] : ['≥', '≤'];
  return `${ms === null ? '–' : least + msOf(ms)} / ${msOf(upstream)} / ${most}${msOf(wait)} / ${msOf(idleOf(row))}`;
}

function pastOf({ rows, releases }: Past, route: string | null): string {
  const shown = rows.slice(-PAST_ROWS);
  if (shown.every(([, perSecond]) => perSecond === 0))
    return route === null ? '' : 'No request of it. Its name is as above: GET /users/:id';
  const head = ['since (UTC)', 'req/s', '5xx/s', 'p50 ms', 'p95 ms', 'p99 ms', 'last week: req/s', 'p95 ms'];
  const cells = shown.map(([at, requests, errors, p50, p95, p99, weekRequests, weekP95]) => [
    timeOf(at),
    ...[requests, errors].map(rateOf),
    ...[p50, p95, p99].map(msOf),
    rateOf(weekRequests),
    msOf(weekP95),
  ]);
  const marks = releases.map(({ at, release }) => `\nrelease ${line(release)} since ${timeOf(at)}`);
  return table(head, cells) + marks.join('');
}

/** `14:05`: the terminal may be elsewhere than the server. */
const timeOf = (at: number): string => new Date(at).toISOString().slice(11, 16);

function blocksOf({ sections: { blocks, eventLoop }, at: now }: DashboardData): string {
  if (blocks.length === 0) return eventLoop === null ? 'off' : 'none';
  const who = ({ route, proven }: BlockRow): string =>
    route === null ? 'unknown' : proven ? route : `${route} (suspect)`;
  const shown = blocks.slice(0, SHOWN_BLOCKS);
  const rows = shown.map((block) => [
    `${spanOf(now - block.at)} ago`,
    grouped(block.count),
    msOf(block.maxMs),
    who(block),
    placeOf(block) ?? block.cause,
    grouped(block.waited),
  ]);
  const repeats = shown.filter(({ curl, stack }) => curl !== null || stack.length > 0).slice(0, EXPLAINED_BLOCKS);
  const explained = repeats.map((block) => {
    const lines = [who(block), ...(block.curl === null ? [] : [block.curl]), ...block.stack];
    return `\n${lines.map((text) => printable(text, MAX_CURL)).join('\n  ')}`;
  });
  return [table(['last', 'times', 'longest ms', 'who', 'where', 'waited'], rows), ...explained].join('\n');
}

function deferOf({ defer, failedWork, rejected }: Sections, now: number): string {
  if (defer === null) return 'off';
  const counts = Object.entries(defer).map(([name, count]) => `${name} ${grouped(count as number)}`);
  const failed = failedWork
    .toReversed()
    .slice(0, 5)
    .map(({ at, name, outcome, error }) => line(`${spanOf(now - at)} ago ${name} ${outcome}: ${error ?? ''}`));
  const refused = rejected.slice(-5).map(({ name, id, error }) => line(`refused for good: ${name} ${id}: ${error}`));
  return [counts.join(', '), ...failed, ...refused].join('\n');
}

function upstreamsOf({ upstream }: Sections): string {
  const rows = upstream
    .slice(0, 20)
    .map(({ target, calls, errors, inFlight, durationMs: { p50, p95, p99 } }) => [
      target,
      ...[calls, errors, inFlight].map(grouped),
      ...[p50, p95, p99].map(msOf),
    ]);
  return table(['target', 'calls', 'errors', 'in flight', 'p50 ms', 'p95 ms', 'p99 ms'], rows);
}

function usersOf({ users }: Sections): string {
  const rows = users
    .slice(0, 10)
    .map(({ unit, route, count, totalMs, upstreamMs }) => [
      unit,
      route,
      grouped(count),
      ...[totalMs, upstreamMs].map(durationOf),
    ]);
  return table(['user', 'route', 'requests', 'total', 'upstream'], rows);
}

function compressionOf({ compression }: Sections): string {
  if (compression === null || compression.responses === 0) return '';
  const { responses, compressed, cacheHits, bytesIn, bytesOut } = compression;
  return `${grouped(compressed)} of ${grouped(responses)} responses, ${bytesOf(bytesIn)} became ${bytesOf(bytesOut)}, ${grouped(cacheHits)} from the cache`;
}

/** `name` is the application's: a route in capitals is another route. */
const titled = (title: string, text: string, name = ''): string =>
  text === '' ? '' : `${title.toUpperCase()}${name}\n${text}`;
const line = (text: string): string => printable(text, 400);

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
