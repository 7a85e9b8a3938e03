import { BADLY_THROTTLED, THROTTLED } from '../core/figures.js';
import { withUserNamed, type Verdict } from '../core/verdict.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { RecentCounts } from './recent-counts.js';
import type { BlockGroup } from './recent-records.js';
import type { ShownRoute } from './route-rows.js';
import type { Problem } from './view.js';
import type { HealthReason } from '../ports/overview.js';
import type { Rejected } from '../ports/rejected.js';
import { counted, formatDuration, formatPercent, formatSpan } from './format.js';

const RECENT_BLOCKS_MS = 5 * 60_000;
const SHOWN_OF_A_KIND = 3;
const MIN_FAILED = 3;
const MIN_FAILED_SHARE = 0.01;

export interface Situation {
  readonly snapshot: PerfSnapshot;
  readonly reasons: readonly HealthReason[];
  readonly verdicts: readonly Verdict[];
  /** The name that is shown for a user. */
  readonly nameUser: (userId: string) => string;
  readonly routes: readonly ShownRoute[];
  readonly blocks: readonly BlockGroup[];
  readonly recent: RecentCounts;
  readonly rejected: readonly Rejected[];
}

/** Problems of now, one sentence each, the worst first. */
export function findProblems(situation: Situation): Problem[] {
  const { verdicts, nameUser, reasons, snapshot } = situation;
  return [
    ...describeVerdicts(verdicts, nameUser),
    ...reasons.map(({ about, text }) => bad(SECTIONS[about], sentence(text))),
    ...failing(situation),
    ...blocking(situation),
    ...slow(situation),
    ...failingUpstreams(situation),
    ...throttled(situation),
    ...lostWork(situation),
    ...snapshot.findings.map(({ kind, text }) => warn(kind === 'pool-wait' ? 'upstreams' : 'requests', sentence(text))),
  ];
}

/** Verdicts on what became worse and still is. */
export function describeVerdicts(verdicts: readonly Verdict[], nameUser: (userId: string) => string): Problem[] {
  const worse = verdicts.filter(({ kind, state }) => kind === 'worse' && state === 'active');
  return worse.map((verdict) => bad('requests', sentence(withUserNamed(verdict, nameUser))));
}

function failing({ routes, recent }: Situation): Problem[] {
  return ranked(routes, ({ key }) => recent.gained(key, 1))
    .filter(([{ key }, failed]) => failed >= MIN_FAILED && failed >= recent.gained(key, 0) * MIN_FAILED_SHARE)
    .map(([{ key, row }, failed]) =>
      bad('requests', `${row.name} failed ${failed} of ${counted(recent.gained(key, 0), 'time')} ${lately(recent)}.`),
    );
}

function slow({ routes, recent }: Situation): Problem[] {
  return ranked(routes, ({ key }) => recent.gained(key, 2)).map(([{ key, row, snapshot }, late]) => {
    const requests = counted(recent.gained(key, 0), 'request');
    const bound = formatDuration(snapshot.over[0]!.ms);
    return warn('requests', `${row.name} took longer than ${bound} for ${late} of ${requests} ${lately(recent)}.`);
  });
}

function blocking({ snapshot, blocks }: Situation): Problem[] {
  const since = snapshot.at - RECENT_BLOCKS_MS;
  const readRecent = ({ times }: BlockGroup) => times.filter(({ at }) => at >= since);
  return ranked(blocks, (group) => readRecent(group).reduce((sum, { ms }) => sum + ms, 0)).map(([group, totalMs]) => {
    const { route, proven, location, cause } = group.row;
    const times = counted(readRecent(group).length, 'time');
    const where = location === null ? '' : ` at ${location}`;
    const nobody = cause === 'gc' ? 'Garbage collection' : 'Something';
    const who = route === null ? nobody : proven ? route : `Probably ${route}`;
    const happened =
      cause === 'not-scheduled'
        ? 'The operating system kept the process waiting'
        : cause === 'pile-up'
          ? 'Short pieces of work piled up on the event loop'
          : `${who} blocked the event loop`;
    return bad('blocks', `${happened} ${times} in the last 5 minutes, ${formatDuration(totalMs)} in all${where}.`);
  });
}

function failingUpstreams({ snapshot, recent }: Situation): Problem[] {
  return ranked(snapshot.upstream, ({ target }) => recent.gained(`upstream ${target}`, 1))
    .filter(([, failed]) => failed >= MIN_FAILED)
    .map(([{ target }, failed]) => {
      const calls = counted(recent.gained(`upstream ${target}`, 0), 'call');
      return bad('upstreams', `${target} failed ${failed} of ${calls} ${lately(recent)}.`);
    });
}

function throttled({ snapshot }: Situation): Problem[] {
  const ratio = snapshot.resources?.cpu.window?.throttledRatio ?? 0;
  // Worse is a reason already.
  if (ratio < THROTTLED || ratio > BADLY_THROTTLED) return [];
  return [warn('container', `The kernel held the process back in ${formatPercent(ratio)} of CPU periods.`)];
}

function lostWork({ recent, rejected }: Situation): Problem[] {
  const [failed, dropped] = [recent.gained('defer', 0), recent.gained('defer', 1)];
  const lost = `Deferred work: ${failed} failed and ${dropped} dropped ${lately(recent)}.`;
  const refused = `Deferred work: ${counted(rejected.length, 'piece')} refused for good, waiting for somebody to look.`;
  return [
    ...(failed + dropped > 0 ? [bad('deferred', lost)] : []),
    ...(rejected.length > 0 ? [warn('deferred', refused)] : []),
  ];
}

const bad = (section: Problem['section'], text: string): Problem => ({ level: 'bad', text, section });
const warn = (section: Problem['section'], text: string): Problem => ({ level: 'warn', text, section });

/** The largest that are not 0. */
function ranked<T>(items: readonly T[], sizeOf: (item: T) => number): [T, number][] {
  return items
    .map((item): [T, number] => [item, sizeOf(item)])
    .filter(([, size]) => size > 0)
    .sort((a, b) => b[1] - a[1])
    .slice(0, SHOWN_OF_A_KIND);
}

const lately = ({ spanMs }: RecentCounts): string => `in the last ${formatSpan(spanMs)}`;

const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;

const SECTIONS: Readonly<Record<HealthReason['about'], Problem['section']>> = {
  'event-loop': 'blocks',
  resources: 'container',
  defer: 'deferred',
  'cached-data': 'requests',
};
