import { sum } from './counts.js';
import type { Gate } from './gate.js';
import type { LoadResult } from './open-loop.js';
import type { Figures } from './outcomes.js';
import { ms, percent, printable } from './quantity.js';

/** A run as a gate judges it. */
export interface Judgement extends Figures {
  readonly failures: Readonly<Record<string, number>>;
  readonly otherStatus: Readonly<Record<string, number>>;
  readonly outcome: 'holds' | 'fails' | 'void';
  /** The gate's failed conditions, or why the run is void. */
  readonly because: readonly string[];
  readonly lateShare: number;
  readonly ownCpu: number;
}

export function judged({ outcomes, unsent, voidBecause, lateShare, ownCpu }: LoadResult, gate: Gate | null): Judgement {
  const figures = outcomes.figures();
  const failures = gate?.failures(figures) ?? [];
  // Without a gate, or with one that asks for little: this is no server.
  if (outcomes.answers === 0 && failures.length === 0) failures.push('no answer at all');
  if (outcomes.refused > outcomes.answers / 2)
    failures.push(`${outcomes.refused} of ${outcomes.answers} answers refuse what was to be answered`);
  if (unsent > 0) failures.push(`10,000 requests in flight: ${unsent} were not sent any more`);
  return {
    ...figures,
    failures: Object.fromEntries(outcomes.failures),
    otherStatus: Object.fromEntries(outcomes.otherStatus),
    outcome: voidBecause !== null ? 'void' : failures.length > 0 ? 'fails' : 'holds',
    because: voidBecause !== null ? [voidBecause] : failures,
    lateShare,
    ownCpu,
  };
}

export function describeOutcome({ outcome, because }: Judgement): string {
  if (outcome === 'holds') return outcome;
  return `${outcome === 'void' ? 'void:' : outcome} ${because.join(', ')}`;
}

/** The most frequent: `'errors: 4 × 503'`; null without any. */
export function listErrors({ failures }: Judgement): string | null {
  const [most] = Object.entries(failures).toSorted(([, a], [, b]) => b - a);
  return most === undefined ? null : `errors: ${most[1]} × ${printable(most[0])}`;
}

/** Many answers have another status than the recording's, or than 200 where there is none: then it is not the load that was meant. */
export function* otherAnswers(
  { otherStatus, requests }: Pick<Judgement, 'otherStatus' | 'requests'>,
  isRecorded: boolean,
): Generator<string> {
  const [most] = Object.entries(otherStatus).toSorted(([, a], [, b]) => b - a);
  const count = sum(Object.values(otherStatus));
  if (most === undefined || count < requests / 20) return;
  const expected = isRecorded ? 'was recorded' : 'expected';
  const advice = isRecorded ? 'Is a header missing that was redacted?' : 'Is it the right URL, or is a header missing?';
  yield `${count} of ${requests} answers have another status than ${expected}, most ${most[0]}. ${advice} --header 'authorization: …'`;
}

const formatTime = (value: number): string => (Number.isNaN(value) ? '-' : value === Infinity ? 'error' : ms(value));

/** For a line below others of its kind. */
export function formatColumns({ requests, durationMs: { p50, p95, p99 }, errorShare }: Figures): string {
  const [a, b, c] = [p50, p95, p99].map((value) => formatTime(value).padStart(7));
  return `${String(requests).padStart(7)} requests  p50 ${a}  p95 ${b}  p99 ${c}  errors ${percent(errorShare)}`;
}
