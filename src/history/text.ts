import { forUser, type Verdict, type VerdictReason } from '../core/verdict.js';
import type { Change, PerfComparison, RouteComparison } from '../ports/history.js';
import { THE_LOOP } from './compare/because.js';
import type { Assessment } from './verdicts/assess.js';
import type { Scope } from './verdicts/scope.js';

const wholeNumber = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** `'180 → 2,310 ms'`, `'4.2 → 8.1 ms'` */
function fromToText(before: number, after: number): string {
  const [from, to] = [before, after].map((ms) => (ms < 10 ? ms.toFixed(1) : wholeNumber.format(ms)));
  return `${from} → ${to} ms`;
}

const signed = (share: number): string =>
  `${share > 0 ? '+' : ''}${(share * 100).toFixed(Math.abs(share) < 0.1 ? 1 : 0)}`;
const percentText = (share: number): string => `${signed(share)} %`;

/** `'+12 % (95 %: +4.0 to +21)'` */
const changeText = ({ value, ci }: Change): string =>
  Number.isFinite(ci[0]) ? `${percentText(value)} (95 %: ${signed(ci[0])} to ${signed(ci[1])})` : percentText(value);

/** `'92 % of it is http ghe.acme.com'` */
function reasonText({ part, name, share }: VerdictReason): string {
  const texts: Partial<Record<typeof part, string>> = {
    own: `own work of ${name}`,
    'loop-wait': `waiting for ${name === THE_LOOP ? name : `the event loop: ${name}`}`,
  };
  return `${Math.round(share * 100)} % of it is ${texts[part] ?? name}`;
}

/** Routes that a text names; it gives the number of the others. */
const SHOWN = 3;

/** A comparison in words. */
export function comparisonText(given: Omit<PerfComparison, 'text'>): string {
  const { whole, routes, caveats } = given;
  const lines: string[] = [];
  if (whole.before.count > 0 && whole.after.count > 0) {
    lines.push(
      `${routeText(whole)} ${wholeNumber.format(whole.before.count)} and ${wholeNumber.format(whole.after.count)} requests.`,
    );
    const moved = routes.filter((one) => one !== whole && excludesZero(one.latency));
    for (const one of moved.slice(0, SHOWN)) lines.push(routeText(one));
    const rest = routes.length - moved.length;
    if (whole.route === null && moved.length === 0) lines.push('No route has changed significantly.');
    else if (moved.length > SHOWN) lines.push(`${moved.length - SHOWN} more routes have changed, ${rest} have not.`);
    else if (whole.route === null) lines.push(`${rest} other routes have not changed significantly.`);
  }
  return [...lines, ...caveats].join(' ');
}

const excludesZero = ({ ci }: Change): boolean => ci[0] > 0 || ci[1] < 0;

function routeText({ route, before, after, latency, errorRate, because }: RouteComparison): string {
  const verdict = excludesZero(latency) ? (latency.value > 0 ? 'slower' : 'faster') : 'no significant change';
  const mean = `mean ${fromToText(before.durationMs.mean, after.durationMs.mean)}, ${changeText(latency)}`;
  const p95 = `p95 ${fromToText(before.durationMs.p95, after.durationMs.p95)}`;
  const errors = excludesZero(errorRate) ? `, errors ${changeText(errorRate)}` : '';
  const reason = because[0] !== undefined && excludesZero(latency) ? ` ${reasonText(because[0])}.` : '';
  return `${route ?? 'All routes'}: ${verdict}, ${mean}, ${p95}${errors}.${reason}`;
}

const AGAINST: Record<Verdict['against'], string> = {
  week: 'the same hours of the weeks before',
  day: 'the 24 hours before',
  release: 'the release before',
};

/** `'2026-11-24 05:52 UTC'` */
const timeText = (at: number): string => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

function levelText({ rule, before, now }: Assessment): string {
  if (rule.metric === 'latency') return fromToText(Math.exp(before), Math.exp(now));
  const [from, to] = [before, now].map((share) => `${(share * 100).toFixed(1)} %`);
  const shares = `${from} → ${to}`;
  if (rule.metric === 'blocked') return `blocks ${shares} of the event loop's time`;
  return `${rule.metric === 'errors' ? 'errors' : 'slow requests'} ${shares}`;
}

function scopeText({ scope, name, detail }: Scope): string {
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

interface Opened extends Pick<Verdict, 'kind' | 'since' | 'because' | 'against'> {
  readonly scope: Scope;
  readonly moved: readonly Assessment[];
  readonly release: { readonly name: string; readonly at: number } | null;
}

/** `'worse since 2026-11-24 05:52 UTC: GET /insights 180 → 2,310 ms, …'` */
export function openedText({ kind, since, scope, moved, because, against, release }: Opened): string {
  const routes = moved.slice(0, SHOWN).map((one) => `${one.route} ${levelText(one)}`);
  const more = moved.length > SHOWN ? [`${moved.length - SHOWN} more routes`] : [];
  const where = scopeText(scope);
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

/** `'resolved after 40 minutes: GET /insights (worse since …, +1,183 %)'` */
export function resolvedText(verdict: Verdict, at: number, ending: Ending): string {
  const { kind, since, routes, change, metric } = verdict;
  const minutes = Math.round((at - since) / 60_000);
  const lasted = minutes < 180 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
  const names = routes.length > SHOWN ? `${routes.length} routes` : routes.join(', ');
  const points = metric === 'latency' ? percentText(change) : `${percentText(change)} of all`;
  return `resolved after ${lasted}: ${names} ${metric}, ${ENDINGS[ending]} (${kind} since ${timeText(since)}, ${points}).`;
}
