import { THROTTLED } from '../core/figures.js';
import { withUserNamed, type Verdict } from '../core/verdict.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { RecentCounts } from './recent-counts.js';
import type { BlockGroup } from './recent-records.js';
import type { ShownRoute } from './route-rows.js';
import type { Problem } from './view.js';
import type { Rejected } from '../core/rejected.js';
import { counted, durationOf, percentOf, spanOf } from './format.js';

const RECENT_BLOCKS_MS = 5 * 60_000;
const SHOWN_OF_A_KIND = 3;
const MIN_FAILED = 3;
const MIN_FAILED_SHARE = 0.01;

export interface Situation {
  readonly snapshot: PerfSnapshot;
  readonly reasons: readonly string[];
  readonly verdicts: readonly Verdict[];
  /** What stands for a user. */
  readonly nameOf: (userId: string) => string;
  readonly routes: readonly ShownRoute[];
  readonly blocks: readonly BlockGroup[];
  readonly recent: RecentCounts;
  readonly rejected: readonly Rejected[];
}

/** What is wrong now, one sentence each, the worst first. */
export function problemsOf(situation: Situation): Problem[] {
  const worse = situation.verdicts.filter(({ kind, state }) => kind === 'worse' && state === 'active');
  return [
    ...worse.map(({ text }): Problem => ({
      level: 'bad',
      text: sentence(withUserNamed(text, situation.nameOf)),
      section: 'requests',
    })),
    ...situation.reasons.map((text): Problem => ({ level: 'bad', text: sentence(text), section: sectionOf(text) })),
    ...failing(situation),
    ...blocking(situation),
    ...slow(situation),
    ...failingUpstreams(situation),
    ...throttled(situation),
    ...lostWork(situation),
    ...situation.snapshot.findings.map(({ kind, text }): Problem => ({
      level: 'warn',
      text: sentence(text),
      section: kind === 'slower-upstream' ? 'upstreams' : 'requests',
    })),
  ];
}

function failing({ routes, recent }: Situation): Problem[] {
  return ranked(routes, ({ key }) => recent.gained(key, 1))
    .filter(([{ key }, failed]) => failed >= MIN_FAILED && failed >= recent.gained(key, 0) * MIN_FAILED_SHARE)
    .map(([{ key, row }, failed]) => ({
      level: 'bad',
      text: `${row.name} failed ${failed} of ${counted(recent.gained(key, 0), 'time')} ${lately(recent)}.`,
      section: 'requests',
    }));
}

function slow({ routes, recent }: Situation): Problem[] {
  return ranked(routes, ({ key }) => recent.gained(key, 2)).map(([{ key, row, snapshot }, late]) => ({
    level: 'warn',
    text:
      `${row.name} took longer than ${durationOf(snapshot.over[0]!.ms)} for ${late} of ` +
      `${counted(recent.gained(key, 0), 'request')} ${lately(recent)}.`,
    section: 'requests',
  }));
}

function blocking({ snapshot, blocks }: Situation): Problem[] {
  const since = snapshot.at - RECENT_BLOCKS_MS;
  const recentOf = ({ times }: BlockGroup) => times.filter(({ at }) => at >= since);
  return ranked(blocks, (group) => recentOf(group).reduce((sum, { ms }) => sum + ms, 0)).map(([group, totalMs]) => {
    const { route, proven, location, cause } = group.row;
    const times = counted(recentOf(group).length, 'time');
    const where = location === null ? '' : ` at ${location}`;
    const nobody = cause === 'gc' ? 'Garbage collection' : 'Something';
    const who = route === null ? nobody : proven ? route : `Probably ${route}`;
    const happened =
      cause === 'not-scheduled'
        ? 'The operating system kept the process waiting'
        : cause === 'pile-up'
          ? 'Short pieces of work piled up on the event loop'
          : `${who} blocked the event loop`;
    return {
      level: 'bad',
      text: `${happened} ${times} in the last 5 minutes, ${durationOf(totalMs)} in all${where}.`,
      section: 'blocks',
    };
  });
}

function failingUpstreams({ snapshot, recent }: Situation): Problem[] {
  return ranked(snapshot.upstream, ({ target }) => recent.gained(`upstream ${target}`, 1))
    .filter(([, failed]) => failed >= MIN_FAILED)
    .map(([{ target }, failed]) => ({
      level: 'bad',
      text: `${target} failed ${failed} of ${counted(recent.gained(`upstream ${target}`, 0), 'call')} ${lately(recent)}.`,
      section: 'upstreams',
    }));
}

function throttled({ snapshot, reasons }: Situation): Problem[] {
  const ratio = snapshot.resources?.cpu.window?.throttledRatio ?? 0;
  // Worse is a reason already.
  if (ratio < THROTTLED || reasons.some((reason) => reason.startsWith('throttling'))) return [];
  return [
    {
      level: 'warn',
      text: `The kernel held the process back in ${percentOf(ratio)} of CPU periods.`,
      section: 'container',
    },
  ];
}

function lostWork({ recent, rejected }: Situation): Problem[] {
  const [failed, dropped] = [recent.gained('defer', 0), recent.gained('defer', 1)];
  const problems: Problem[] = [];
  if (failed + dropped > 0) {
    const text = `Deferred work: ${failed} failed and ${dropped} dropped ${lately(recent)}.`;
    problems.push({ level: 'bad', text, section: 'deferred' });
  }
  if (rejected.length > 0) {
    const text = `Deferred work: ${counted(rejected.length, 'piece')} refused for good, waiting for somebody to look.`;
    problems.push({ level: 'warn', text, section: 'deferred' });
  }
  return problems;
}

/** The largest that are not 0. */
function ranked<T>(items: readonly T[], sizeOf: (item: T) => number): [T, number][] {
  return items
    .map((item): [T, number] => [item, sizeOf(item)])
    .filter(([, size]) => size > 0)
    .sort((a, b) => b[1] - a[1])
    .slice(0, SHOWN_OF_A_KIND);
}

const lately = ({ spanMs }: RecentCounts): string => `in the last ${spanOf(spanMs)}`;

const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;

/** By how a reason begins. */
const SECTIONS: readonly [RegExp, Problem['section']][] = [
  [/^deferred/, 'deferred'],
  [/^(throttling|memory)/, 'container'],
  [/^preloaded/, 'requests'],
];
const sectionOf = (reason: string): Problem['section'] =>
  SECTIONS.find(([words]) => words.test(reason))?.[1] ?? 'blocks';
