import { setImmediate } from 'node:timers/promises';
import { OVERVIEW, type Overview } from '../core/overview.js';
import { reasonOf } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import { inRootContext } from '../core/root-context.js';
import type { RequestLifecycle } from '../http/lifecycle.js';
import { rounded } from './route-rows.js';
import type { Past, PastRow } from './view.js';

const AGE_MS = 30_000;
const STEP_MS = 5 * 60_000;
const MIN_STEP_MS = 60_000;
const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
/** 120 points of the tier that a store keeps as well: what was before a restart, and of other pods. */
const PAST_MS = 120 * STEP_MS;
/** The whole, and routes that viewers have opened. */
const MAX_KNOWN = 16;
const NOTHING: Past = { rows: [], releases: [] };

type History = NonNullable<ReturnType<Overview['past']>>;

interface Known {
  past: Past;
  atMs: number;
  loading: Promise<void> | null;
}

/** The last hours of the whole and of single routes. A store may be slow: they are read beside the polls, now and then. */
export class PastFigures {
  private readonly known = new Map<string, Known>();

  constructor(
    private readonly requests: RequestLifecycle,
    private readonly report: OncePerCause,
    private readonly nowMs: () => number,
  ) {}

  /** What is known by now, of one route or of all. */
  now(route: string | null): Past {
    return this.refreshed(route).past;
  }

  /** The same once it is known. */
  async settled(route: string | null): Promise<Past> {
    const known = this.refreshed(route);
    await known.loading;
    return known.past;
  }

  private refreshed(route: string | null): Known {
    const key = route ?? '';
    const known = this.known.get(key) ?? { past: NOTHING, atMs: -Infinity, loading: null };
    // The one that was asked for last is the last to go.
    this.known.delete(key);
    this.known.set(key, known);
    if (this.known.size > MAX_KNOWN) this.known.delete(this.known.keys().next().value!);
    if (known.loading === null && this.nowMs() - known.atMs >= AGE_MS)
      known.loading = inRootContext(() => this.load(route, known));
    return known;
  }

  private async load(route: string | null, known: Known): Promise<void> {
    try {
      await setImmediate();
      const history = OVERVIEW.get(this.requests)?.past() ?? null;
      if (history !== null) known.past = await read(history, route, Date.now());
    } catch (error) {
      const cause = `the dashboard could not read the history: ${reasonOf(error)}`;
      this.report.report(cause, `${cause}. It shows it as it was.`);
    } finally {
      known.loading = null;
      known.atMs = this.nowMs();
    }
  }
}

async function read(history: History, route: string | null, to: number): Promise<Past> {
  const of = route === null ? {} : { route };
  const from = to - PAST_MS;
  const { stepMs, points } = await history.history({ from, to, stepMs: STEP_MS }, of);
  const lastWeek = await history.history({ from: from - WEEK_MS, to: to - WEEK_MS, stepMs: HOUR_MS }, of);
  const hours = new Map(lastWeek.points.map((point) => [point.at, point]));
  const rows = points.slice(-120).map(({ at, count, errors, durationMs: { p50, p95, p99 } }): PastRow => {
    const known = (value: number): number | null => (count === 0 ? null : rounded(value));
    const perSecond = (value: number, ms: number): number => rounded(value / (ms / 1_000));
    // The last step has not ended.
    const stepped = Math.max(MIN_STEP_MS, Math.min(stepMs, to - at));
    const then = hours.get(Math.floor((at - WEEK_MS) / HOUR_MS) * HOUR_MS);
    return [
      at,
      perSecond(count, stepped),
      perSecond(errors, stepped),
      known(p50),
      known(p95),
      known(p99),
      then === undefined ? null : perSecond(then.count, HOUR_MS),
      then === undefined || then.count === 0 ? null : rounded(then.durationMs.p95),
    ];
  });
  // The first one was there before.
  return { rows, releases: (await history.releases({ from, to })).slice(1) };
}
