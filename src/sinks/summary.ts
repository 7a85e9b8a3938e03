import { counted, percent } from '../core/figures.js';
import type { BlockRecord } from '../core/record.js';
import { describeResources } from '../core/resource-text.js';
import type { PerfSinkHost } from '../core/sink.js';
import { isTraffic, isWork } from '../core/work-methods.js';
import { nameRoute } from './names.js';
import { findWait, quantileMs, RouteWindows } from './window.js';

const SHOWN_ROUTES = 3;
/** Below this number of requests the line has their mean, because percentiles are chance. */
const MIN_COUNT = 10;
const NO_STALLS = { blocks: 0, blockedMs: 0, pauses: 0, pausedMs: 0 };

export class Summaries {
  private readonly windows = new RouteWindows();
  private abortedBefore = 0;
  private lostBefore = 0;
  private stalls = NO_STALLS;

  constructor(private readonly windowMs: number) {}

  /** Pauses of the process are counted apart: they are no code's. */
  blocked({ cause, durationMs }: Pick<BlockRecord, 'cause' | 'durationMs'>): void {
    const { blocks, blockedMs, pauses, pausedMs } = this.stalls;
    const pause = { ...this.stalls, pauses: pauses + 1, pausedMs: pausedMs + durationMs };
    const block = { ...this.stalls, blocks: blocks + 1, blockedMs: blockedMs + durationMs };
    this.stalls = cause === 'not-scheduled' ? pause : block;
  }

  /** The window since the last call, with `eventLoop` and `resources` of its last seconds; null when no request ended. */
  next(host: PerfSinkHost) {
    const { routes, eventLoop, resources, defer } = host.snapshot();
    const windows = this.windows.next(host, routes);
    const traffic = windows.filter(({ method }) => isTraffic(method));
    const longest = windows.sort((a, b) => b.totalMs - a.totalMs).slice(0, SHOWN_ROUTES);
    const allAborted = sum(routes, ({ aborted }) => aborted);
    const allLost = defer === null ? 0 : defer.failed + defer.dropped;
    const aborted = allAborted - this.abortedBefore;
    const deferredLost = allLost - this.lostBefore;
    const { windowMs, stalls } = this;
    [this.abortedBefore, this.lostBefore, this.stalls] = [allAborted, allLost, NO_STALLS];
    if (windows.length === 0 && aborted === 0) return null;
    return {
      event: 'summary' as const,
      windowMs,
      requests: sum(traffic, ({ count }) => count) + aborted,
      /** Messages, events and socket messages among the requests. */
      messages: sum(traffic, ({ method, count }) => (isWork(method) ? count : 0)),
      errors: sum(traffic, ({ errors }) => errors),
      aborted,
      ...stalls,
      /** Deferred tasks that failed or were dropped. */
      deferredLost,
      /** The routes with most time in total. */
      routes: longest.map((window) => ({
        method: window.method,
        route: window.route,
        count: window.count,
        errors: window.errors,
        meanMs: window.totalMs / window.count,
        p50Ms: quantileMs(window, 0.5),
        p95Ms: quantileMs(window, 0.95),
        /** The upstream that took at least half of its time; null where none did. */
        waits: findWait(window),
      })),
      eventLoop,
      resources,
    };
  }
}

type Summary = NonNullable<ReturnType<Summaries['next']>>;

export function summaryText(summary: Summary): string {
  const { windowMs, requests, messages, errors, aborted, deferredLost, routes, eventLoop, resources } = summary;
  const { blocks, blockedMs, pauses, pausedMs } = summary;
  const counts = [
    requests === messages && messages > 0 ? '' : counted(requests - messages, 'request'),
    messages === 0 ? '' : counted(messages, 'message'),
    errors === 0 ? '' : counted(errors, 'error'),
    aborted === 0 ? '' : `${aborted} aborted`,
    blocks === 0 ? '' : `${counted(blocks, 'event-loop block')} (${blockedMs.toFixed(0)} ms)`,
    pauses === 0 ? '' : `${counted(pauses, 'pause')} of the process (${pausedMs.toFixed(0)} ms)`,
    deferredLost === 0 ? '' : `${counted(deferredLost, 'deferred task')} failed or dropped`,
  ];
  const shown = routes.map(
    ({ method, route, count, errors: failed, meanMs, p50Ms, p95Ms, waits }) =>
      `${count} × ${nameRoute({ method, route, handler: null })} ` +
      (count < MIN_COUNT ? `mean ${rounded(meanMs)} ms` : `p50 ${rough(p50Ms)} ms, p95 ${rough(p95Ms)} ms`) +
      (waits === null ? '' : `, ${percent(waits.share)} waiting for ${waits.target}`) +
      (failed === 0 ? '' : `, ${counted(failed, 'error')}`),
  );
  const loop =
    eventLoop === null
      ? ''
      : `Event loop ${percent(eventLoop.utilization)} busy, p99 delay ${eventLoop.delayMs.p99.toFixed(0)} ms`;
  return joined('. ', [
    `Last ${windowMs / 1_000} s: ${joined(', ', counts)}`,
    shown.length === 0 ? '' : `Top routes by total time: ${shown.join('; ')}`,
    joined('; ', [loop, resources === null ? '' : describeResources(resources)]),
  ]);
}

const joined = (separator: string, parts: readonly string[]): string =>
  parts.filter((part) => part !== '').join(separator);
const rounded = (ms: number): string => (ms < 10 ? ms.toFixed(1) : ms.toFixed(0));
/** Two digits: percentiles of a window are within 5 %, and more digits would contradict the lines of its slow requests. */
const rough = (ms: number): string => rounded(Number(ms.toPrecision(2)));
const sum = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((total, item) => total + of(item), 0);
