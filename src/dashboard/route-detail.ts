import type { RouteHistogram } from '../core/sink.js';
import type { ShownRoute } from './route-rows.js';
import type { RouteDetail } from './view.js';

/** Half an octave apart, from an eighth of a millisecond to two minutes. */
const BOUNDS_MS = Array.from({ length: 41 }, (_, step) => 2 ** (step / 2 - 3));
const MAX_UPSTREAMS = 20;

/** A route in depth, for who has opened it. */
export function describeRoute(
  { snapshot, row }: ShownRoute,
  histograms: Iterable<RouteHistogram>,
  { users, blocks, past }: Pick<RouteDetail, 'users' | 'blocks' | 'past'>,
): RouteDetail {
  const atMost = BOUNDS_MS.map(() => 0);
  let all = 0;
  for (const histogram of histograms) {
    const { method, route, handler, count } = histogram;
    // The requests without a route share one row, whatever their method.
    const isSame =
      route === snapshot.route && handler === snapshot.handler && (route === '' || method === snapshot.method);
    if (!isSame) continue;
    all += count;
    histogram.countsAtMost(BOUNDS_MS).forEach((seen, index) => (atMost[index]! += seen));
  }
  const buckets: RouteDetail['distribution'] = atMost.map((seen, index) => ({
    ms: BOUNDS_MS[index]!,
    count: seen - (atMost[index - 1] ?? 0),
  }));
  buckets.push({ ms: null, count: all - atMost.at(-1)! });
  return {
    id: row.id,
    statuses: snapshot.statuses,
    distribution: withoutEnds(buckets),
    users,
    upstream: snapshot.upstream.slice(0, MAX_UPSTREAMS),
    blocks,
    past,
  };
}

/** From the first that is not empty to the last. */
function withoutEnds<T extends { count: number }>(buckets: readonly T[]): T[] {
  const first = buckets.findIndex(({ count }) => count > 0);
  const last = buckets.findLastIndex(({ count }) => count > 0);
  return first === -1 ? [] : buckets.slice(first, last + 1);
}
