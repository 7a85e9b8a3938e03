import { BADLY_THROTTLED, THROTTLED } from '../core/figures.js';
import type { Finding, PerfSnapshot } from '../core/snapshot.js';
import { withUserNamed, type Verdict } from '../core/verdict.js';
import type { HealthReason } from '../ports/overview.js';
import type { Rejected } from '../ports/rejected.js';
import { counted, formatDuration, formatPercent, formatSpan } from './format.js';
import type { Counted, Lately } from './lately.js';
import { cutName } from './route-rows.js';
import type { BlockGroup } from './recent-records.js';
import type { Problem } from './view.js';

const RECENT_BLOCKS_MS = 5 * 60_000;
const SHOWN_OF_A_KIND = 3;
const MIN_FAILED = 3;
const MIN_FAILED_SHARE = 0.01;
/** The name under which deferred work that failed or was dropped is counted. */
export const LOST = 'lost';

export interface Situation {
  readonly snapshot: PerfSnapshot;
  readonly reasons: readonly HealthReason[];
  readonly verdicts: readonly Verdict[];
  readonly nameUser: (userId: string) => string;
  readonly blocks: readonly BlockGroup[];
  readonly rejected: readonly Rejected[];
  readonly routes: Lately;
  readonly calls: Lately;
  readonly deferred: Lately;
}

/** Problems of now, one sentence each, the worst first. */
export function findProblems(situation: Situation): Problem[] {
  const { verdicts, nameUser, reasons, snapshot, routes, calls } = situation;
  return [
    ...describeVerdicts(verdicts, nameUser),
    ...reasons.map(({ about, text }) => bad(SECTIONS[about], sentence(text))),
    ...failing(routes, 'requests', 'time'),
    ...blocking(situation),
    ...slow(routes),
    ...failing(calls, 'upstreams', 'call'),
    ...throttled(situation),
    ...lostWork(situation),
    ...describeFindings(snapshot.findings),
  ];
}

/** A pool without free connections delays every route that uses it: the first few waits tell it. */
function describeFindings(findings: readonly Finding[]): Problem[] {
  const waits = findings.filter(({ kind }) => kind === 'pool-wait');
  const others = findings.filter(({ kind }) => kind !== 'pool-wait');
  const more = waits.length - SHOWN_OF_A_KIND;
  return [
    ...others.map(({ text }) => warn('requests', sentence(text))),
    ...waits.slice(0, SHOWN_OF_A_KIND).map(({ text }) => warn('upstreams', sentence(text))),
    ...(more > 0
      ? [warn('upstreams', `${counted(more, 'more route')} ${more === 1 ? 'waits' : 'wait'} for connections.`)]
      : []),
  ];
}

/** Verdicts on what became worse and still is. */
export function describeVerdicts(verdicts: readonly Verdict[], nameUser: (userId: string) => string): Problem[] {
  const worse = verdicts.filter(({ kind, state }) => kind === 'worse' && state === 'active');
  return worse.map((verdict) => bad('requests', sentence(withUserNamed(verdict, nameUser))));
}

/** Counted things of which more than a few failed lately. */
function failing(lately: Lately, section: Problem['section'], noun: 'time' | 'call'): Problem[] {
  return ranked([...lately.counts], ([, { errors }]) => errors)
    .filter(([[, { count }], failed]) => failed >= MIN_FAILED && failed >= count * MIN_FAILED_SHARE)
    .map(([[name, { count }], failed]) =>
      bad(section, `${cutName(name)} failed ${failed} of ${counted(count, noun)} ${inLast(lately)}.`),
    );
}

function slow(lately: Lately): Problem[] {
  const readSlow = ({ over = [] }: Counted): number => over[0]?.count ?? 0;
  return ranked([...lately.counts], ([, one]) => readSlow(one)).map(([[name, { count, over }], late]) => {
    const bound = formatDuration(over![0]!.ms);
    const requests = counted(count, 'request');
    return warn('requests', `${cutName(name)} took longer than ${bound} for ${late} of ${requests} ${inLast(lately)}.`);
  });
}

function blocking({ snapshot, blocks }: Situation): Problem[] {
  const since = snapshot.at - RECENT_BLOCKS_MS;
  const readRecent = ({ times }: BlockGroup) => times.filter(({ at }) => at >= since);
  return ranked(blocks, (group) => readRecent(group).reduce((sum, { ms }) => sum + ms, 0)).map(([group, totalMs]) => {
    const times = counted(readRecent(group).length, 'time');
    const where = group.row.location === null ? '' : ` at ${group.row.location}`;
    return bad(
      'blocks',
      `${nameCause(group)} ${times} in the last 5 minutes, ${formatDuration(totalMs)} in all${where}.`,
    );
  });
}

function nameCause({ row: { route, proven, cause } }: BlockGroup): string {
  if (cause === 'not-scheduled') return 'The operating system kept the process waiting';
  if (cause === 'pile-up') return 'Short pieces of work piled up on the event loop';
  const nobody = cause === 'gc' ? 'Garbage collection' : 'Something';
  return `${route === null ? nobody : proven ? route : `Probably ${route}`} blocked the event loop`;
}

function throttled({ snapshot }: Situation): Problem[] {
  const ratio = snapshot.resources?.cpu.window?.throttledRatio ?? 0;
  // Worse is a reason already.
  if (ratio < THROTTLED || ratio > BADLY_THROTTLED) return [];
  return [warn('container', `The kernel held the process back in ${formatPercent(ratio)} of CPU periods.`)];
}

function lostWork({ deferred, rejected }: Situation): Problem[] {
  const lost = deferred.counts.get(LOST)?.errors ?? 0;
  const refused = `Deferred work: ${counted(rejected.length, 'piece')} refused for good, waiting for somebody to look.`;
  return [
    ...(lost > 0 ? [bad('deferred', `Deferred work: ${lost} failed or dropped ${inLast(deferred)}.`)] : []),
    ...(rejected.length > 0 ? [warn('deferred', refused)] : []),
  ];
}

const bad = (section: Problem['section'], text: string): Problem => ({ level: 'bad', text, section });
const warn = (section: Problem['section'], text: string): Problem => ({ level: 'warn', text, section });

function ranked<T>(items: readonly T[], measure: (item: T) => number): [T, number][] {
  return items
    .map((item): [T, number] => [item, measure(item)])
    .filter(([, size]) => size > 0)
    .sort((a, b) => b[1] - a[1])
    .slice(0, SHOWN_OF_A_KIND);
}

const inLast = ({ spanMs }: Lately): string => `in the last ${formatSpan(spanMs)}`;

const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;

const SECTIONS: Readonly<Record<HealthReason['about'], Problem['section']>> = {
  'event-loop': 'blocks',
  resources: 'container',
  defer: 'deferred',
  'cached-data': 'requests',
};
