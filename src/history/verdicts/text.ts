import { forUser, type Verdict, type VerdictReason } from '../../core/verdict.js';
import { fromToText, percentText, reasonText } from '../compare/text.js';
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
  const shares = `${percent(before)} → ${percent(now)}`;
  const texts: Record<Verdict['metric'], string> = {
    latency: fromToText(Math.exp(before), Math.exp(now)),
    errors: `errors ${shares}`,
    over: `slow requests ${shares}`,
    blocked: `blocks ${shares} of the event loop's time`,
  };
  return texts[rule.metric];
}

function whom({ scope, name, detail }: Scope): string {
  const more = detail === null ? '' : ` (${detail})`;
  const texts: Record<Verdict['scope'], string> = {
    site: `site-wide${more}`,
    pod: `on pod ${name}${more}`,
    users: `${forUser(name ?? '')}${more}`,
    upstream: `calls to ${name}`,
    routes: detail ?? '',
  };
  return texts[scope];
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

/** Why a verdict is resolved. */
export type Ending = 'over' | 'turned' | 'usual' | 'unused';
const ENDINGS: Record<Ending, string> = {
  over: 'back to what it was',
  turned: 'now as far the other way',
  usual: 'the usual from now on',
  unused: 'hardly asked for in the last 24 hours',
};

/** The release that ended a change, and how it is against what was before that. */
export interface Fix {
  readonly release: string;
  readonly change: number;
}

/** A smaller change is none, relative. */
const SAME = 0.05;

function fixText({ release, change }: Fix, metric: Verdict['metric']): string {
  const than = 'than before the regression';
  const share = `${Math.round(Math.abs(change) * 100)} %`;
  if (metric !== 'latency') return ` since ${release}`;
  if (Math.abs(change) < SAME) return ` since ${release}, as fast as before the regression`;
  return ` since ${release}, ${share} ${change < 0 ? 'faster' : 'slower'} ${than}`;
}

/** `'resolved after 40 minutes: GET /insights (worse since …, +1,183 %)'` */
export function resolvedText(
  { kind, since, routes, change, metric }: Verdict,
  at: number,
  ending: Ending,
  fix: Fix | null,
): string {
  const minutes = Math.round((at - since) / 60_000);
  const lasted = minutes < 180 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
  const names = routes.length > SHOWN_ROUTES ? `${routes.length} routes` : routes.join(', ');
  const points = metric === 'latency' ? percentText(change) : `${percentText(change)} of all`;
  return `resolved after ${lasted}: ${names} ${metric}, ${ENDINGS[ending]}${fix === null || kind === 'better' ? '' : fixText(fix, metric)} (${kind} since ${timeText(since)}, ${points}).`;
}
