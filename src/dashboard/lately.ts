import type { RouteSnapshot } from '../core/snapshot.js';
import type { HistoryReader } from '../ports/history.js';
import { nameRoute } from './route-rows.js';

const MINUTE_MS = 60_000;
/** Routes are counted by the history, also while no page is open. */
const ROUTES_MS = 5 * MINUTE_MS;
/** Everything else is counted between samples. */
const GAINS_MS = 2 * MINUTE_MS;

export interface Counted {
  readonly count: number;
  readonly errors: number;
  readonly over?: RouteSnapshot['over'];
}

/** Counts of the last minutes, by name. */
export interface Lately {
  readonly spanMs: number;
  readonly counts: ReadonlyMap<string, Counted>;
}

/** Counts the routes of this process in the last five minutes. */
export async function countRoutes(history: HistoryReader, upMs: number): Promise<Lately> {
  const nowMs = Date.now();
  // The first minute that is counted as a whole.
  const from = Math.ceil((nowMs - ROUTES_MS) / MINUTE_MS) * MINUTE_MS;
  return { spanMs: Math.min(nowMs - from, upMs), counts: await history.countsSince(from) };
}

/** Counts the routes since the process started, where there is no history. One slow request would be news for ever: none is. */
export const countAllRoutes = (routes: readonly RouteSnapshot[], upMs: number): Lately => ({
  spanMs: upMs,
  counts: new Map(routes.map((route) => [nameRoute(route), { count: route.count, errors: route.errors }])),
});

/** Gains of counters that only grow, since the first sample of the last minutes. */
export class Gains {
  private readonly samples: { readonly ms: number; readonly counts: Lately['counts'] }[] = [];

  add(ms: number, counts: Lately['counts']): Lately {
    const { samples } = this;
    samples.push({ ms, counts });
    while (ms - samples[0]!.ms > GAINS_MS) samples.shift();
    const [first] = samples;
    const gained = [...counts].map(([name, { count, errors }]) => {
      const before = first!.counts.get(name) ?? { count: 0, errors: 0 };
      return [name, { count: count - before.count, errors: errors - before.errors }] as const;
    });
    return { spanMs: ms - first!.ms, counts: new Map(gained) };
  }
}
