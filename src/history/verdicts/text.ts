import type { Verdict, VerdictReason } from '../../core/verdict.js';
import { msText, percentText, reasonText } from '../compare/text.js';
import type { Assessment } from './assess.js';
import type { Scope } from './scope.js';

const SHOWN_ROUTES = 3;
const AGAINST: Record<Verdict['against'], string> = {
  week: 'the same hours of the weeks before',
  day: 'the 24 hours before',
  release: 'the release before',
};

/** `'2026-11-24 05:52 UTC'` */
export const timeText = (at: number): string => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

function levelText({ rule, before, now }: Assessment): string {
  switch (rule.metric) {
    case 'latency':
      return `${msText(Math.exp(before)).replace(/ ms$/, '')} → ${msText(Math.exp(now))}`;
    case 'errors':
      return `errors ${percent(before)} → ${percent(now)}`;
    case 'over':
      return `slow requests ${percent(before)} → ${percent(now)}`;
    case 'blocked':
      return `blocks ${percent(before)} → ${percent(now)} of the event loop's time`;
  }
}

function whom({ scope, name, detail }: Scope): string {
  const more = detail === null ? '' : ` (${detail})`;
  switch (scope) {
    case 'site':
      return `site-wide${more}`;
    case 'pod':
      return `on pod ${name}${more}`;
    case 'users':
      return `for user ${name}${more}`;
    case 'upstream':
      return `calls to ${name}`;
    case 'routes':
      return detail ?? '';
  }
}

export interface Opened {
  readonly kind: Verdict['kind'];
  readonly since: number;
  readonly scope: Scope;
  /** The heaviest first. */
  readonly moved: readonly Assessment[];
  readonly because: readonly VerdictReason[];
  readonly against: Verdict['against'];
  readonly release: { readonly name: string; readonly at: number } | null;
}

/** `'worse since 2026-11-24 05:52 UTC: GET /insights 180 → 2,310 ms, …'` */
export function openedText({ kind, since, scope, moved, because, against, release }: Opened): string {
  const routes = moved.slice(0, SHOWN_ROUTES).map((one) => `${one.route} ${levelText(one)}`);
  const more = moved.length > SHOWN_ROUTES ? [`${moved.length - SHOWN_ROUTES} more routes`] : [];
  const where = whom(scope);
  const deployed = release === null ? '' : `, release ${release.name} since ${timeText(release.at)}`;
  const reasons = because.slice(0, 2).filter(({ share }, index) => index === 0 || share >= 0.1);
  return (
    `${kind} since ${timeText(since)}: ${[...routes, ...more].join(', ')}${where === '' ? '' : `; ${where}`}${deployed}. ` +
    `${reasons.map(reasonText).join(', ')}. Against ${AGAINST[against]}.`
  );
}

/** `'resolved after 40 minutes: GET /insights (worse since …, +1,183 %)'` */
export function resolvedText({ kind, since, routes, change, metric }: Verdict, at: number, isUsual: boolean): string {
  const minutes = Math.round((at - since) / 60_000);
  const lasted = minutes < 180 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
  const names = routes.length > SHOWN_ROUTES ? `${routes.length} routes` : routes.join(', ');
  const how = isUsual ? 'the usual from now on' : 'back to what it was';
  const points = metric === 'latency' ? percentText(change) : `${percentText(change)} of all`;
  return `resolved after ${lasted}: ${names} ${metric}, ${how} (${kind} since ${timeText(since)}, ${points}).`;
}
