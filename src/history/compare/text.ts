import type { Change, PerfComparison, RouteComparison } from '../../ports/history.js';
import type { VerdictReason } from '../../core/verdict.js';

const wholeNumber = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** `'2,310 ms'`, `'4.2 ms'` */
export const msText = (ms: number): string => `${ms < 10 ? ms.toFixed(1) : wholeNumber.format(ms)} ms`;

/** `'180 → 2,310 ms'` */
export const fromToText = (before: number, after: number): string =>
  `${msText(before).replace(/ ms$/, '')} → ${msText(after)}`;

const signed = (share: number): string =>
  `${share > 0 ? '+' : ''}${(share * 100).toFixed(Math.abs(share) < 0.1 ? 1 : 0)}`;
export const percentText = (share: number): string => `${signed(share)} %`;

/** `'+12 % (95 %: +4.0 to +21)'` */
const changeText = ({ value, ci }: Change): string =>
  Number.isFinite(ci[0]) ? `${percentText(value)} (95 %: ${signed(ci[0])} to ${signed(ci[1])})` : percentText(value);

const PARTS: Record<VerdictReason['part'], (name: string) => string> = {
  mix: (name) => name,
  own: (name) => `own work of ${name}`,
  'loop-wait': (name) => `waiting for the event loop: ${name}`,
  upstream: (name) => name,
  unexplained: (name) => name,
};

/** `'92 % of it is http ghe.acme.com'` */
export function reasonText({ part, name, share }: VerdictReason): string {
  return `${Math.round(share * 100)} % of it is ${PARTS[part](name)}`;
}

const SHOWN = 3;

/** The answer for people. */
export function comparisonText(given: Omit<PerfComparison, 'text'>): string {
  const { whole, routes, mix, confounded, caveats } = given;
  const lines: string[] = [];
  if (whole.before.count > 0 && whole.after.count > 0) {
    lines.push(
      `${sentence(whole)} ${wholeNumber.format(whole.before.count)} and ${wholeNumber.format(whole.after.count)} requests.`,
    );
    if (Math.abs(mix) >= 0.01) lines.push(`The mix of routes alone explains ${percentText(mix)}.`);
    const moved = routes.filter((one) => one !== whole && excludesZero(one.latency));
    for (const one of moved.slice(0, SHOWN)) lines.push(sentence(one));
    const rest = routes.length - moved.length;
    if (whole.route === null && moved.length === 0) lines.push('No route has changed significantly.');
    else if (moved.length > SHOWN) lines.push(`${moved.length - SHOWN} more routes have changed, ${rest} have not.`);
    else if (whole.route === null) lines.push(`${rest} other routes have not changed significantly.`);
  }
  if (confounded !== null) lines.push(`${confounded[0]!.toUpperCase()}${confounded.slice(1)}.`);
  return [...lines, ...caveats].join(' ');
}

const excludesZero = ({ ci }: Change): boolean => ci[0] > 0 || ci[1] < 0;

function sentence({ route, before, after, latency, errorRate, because }: RouteComparison): string {
  const verdict = excludesZero(latency) ? (latency.value > 0 ? 'slower' : 'faster') : 'no significant change';
  const mean = `mean ${fromToText(before.durationMs.mean, after.durationMs.mean)}, ${changeText(latency)}`;
  const p95 = `p95 ${fromToText(before.durationMs.p95, after.durationMs.p95)}`;
  const errors = excludesZero(errorRate) ? `, errors ${changeText(errorRate)}` : '';
  const reason = because[0] !== undefined && excludesZero(latency) ? ` ${reasonText(because[0])}.` : '';
  return `${route ?? 'All routes'}: ${verdict}, ${mean}, ${p95}${errors}.${reason}`;
}
