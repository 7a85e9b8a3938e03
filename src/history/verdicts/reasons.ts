import type { Verdict } from '../../core/verdict.js';
import { becauseOf, type SiteSums } from '../compare/because.js';
import type { Assessment } from './assess.js';
import type { MetricRule } from './metrics.js';

/** Of latency what the added time is; of the others, which routes. */
export function reasonsOf(
  { metric }: MetricRule,
  moved: readonly Assessment[],
  before: SiteSums,
  after: SiteSums,
): Verdict['because'] {
  if (metric === 'latency' || metric === 'over')
    return becauseOf(
      before,
      after,
      moved.map(({ route }) => route),
    );
  const part = metric === 'blocked' ? ('own' as const) : ('unexplained' as const);
  const changes = moved.map(({ route, now, before: usual, count }) => {
    return { part, name: route, ms: Math.abs(now - usual) * (metric === 'blocked' ? 1 : count) };
  });
  const total = changes.reduce((sum, { ms }) => sum + ms, 0);
  return changes.map(({ name, ms }) => ({ part, name, share: ms / total })).toSorted((a, b) => b.share - a.share);
}
