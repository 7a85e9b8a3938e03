import type { UpstreamUse } from '../../core/record.js';
import type { WorkAnswer } from './send.js';

/** Bounds of a count, both inclusive. */
export interface Allowed {
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** Expected work of one request; fields that are left out are not compared. */
export interface ExpectedWork {
  /** Calls by target, by the names of `snapshot().upstream`: `{ 'sql db:5432/shop': { atMost: 3 } }`. Other targets are free. */
  readonly upstream?: Readonly<Record<string, Allowed>>;
  /** Milliseconds of event-loop blocks; those below `eventLoop.thresholdMs` (50) count as none. */
  readonly blockedMs?: Allowed;
  /** Length of the response's body as it was sent. */
  readonly bytes?: Allowed;
  /** Names of the deferred work that the request starts: exactly these, in any order. */
  readonly deferred?: readonly string[];
  /** @default below 400 */
  readonly status?: number;
}

/** Measured work of one request. */
export interface SeenWork extends WorkAnswer {
  readonly blockedMs: number;
  readonly upstream: readonly UpstreamUse[];
  /** Calls that began meanwhile and could not be placed on any request: the counts above may lack them. */
  readonly unplacedCalls: number;
  readonly deferred: readonly string[];
}

interface Row {
  readonly what: string;
  readonly allowed: string;
  readonly seen: string;
  readonly holds: boolean;
}

/** Calls that are on no request, by target: they may have been the request's. */
type Unplaced = ReadonlyMap<string, number>;

/** The error's text; null where everything is as expected. */
export function compareWork(
  request: string,
  expected: ExpectedWork,
  seen: SeenWork,
  unplaced: Unplaced,
): string | null {
  const rows = compare(expected, seen, unplaced);
  if (rows.every(({ holds }) => holds)) return null;
  const broken = rows.filter(({ holds }) => !holds);
  const why = broken.map(({ what, allowed, seen: was }) => `${what} ${was} (expected ${allowed})`);
  const lines = [['', 'expected', 'seen'], ...rows.map((row) => [row.what, row.allowed, row.seen])];
  const marked = table(lines).map((line, i) =>
    i > 0 && rows[i - 1]!.holds ? line : `${line}${i === 0 ? '' : '   <--'}`,
  );
  const calls = describeCalls(seen, unplaced, Object.keys(expected.upstream ?? {}));
  return [`${request}: ${why.join('; ')}`, '', ...marked, '', 'Calls by target:', ...calls].join('\n');
}

function compare(expected: ExpectedWork, seen: SeenWork, unplaced: Unplaced): Row[] {
  const { upstream = {}, blockedMs, bytes, deferred, status } = expected;
  const calls = (target: string): number => seen.upstream.find((use) => use.target === target)?.calls ?? 0;
  return [
    {
      what: 'status',
      allowed: status === undefined ? 'below 400' : String(status),
      seen: String(seen.status),
      holds: status === undefined ? seen.status < 400 : seen.status === status,
    },
    ...Object.entries(upstream).map(([target, allowed]) =>
      compareCount(target, allowed, calls(target), 'calls', unplaced.get(target)),
    ),
    ...(blockedMs === undefined ? [] : [compareCount('blocked', blockedMs, Math.round(seen.blockedMs), 'ms')]),
    ...(bytes === undefined ? [] : [compareCount('body', bytes, seen.bytes, 'bytes')]),
    ...(deferred === undefined ? [] : [compareDeferred(deferred, seen.deferred)]),
  ];
}

/** `unsure`: so many more may be the request's. Then "at most" must hold with them, and "at least" without them. */
function compareCount(what: string, allowed: Allowed, value: number, unit: string, unsure = 0): Row {
  const { atMost = Infinity, atLeast = 0 } = allowed;
  return {
    what,
    allowed: describeBounds(allowed, unit),
    seen: unsure === 0 ? amount(value, unit) : `${value} to ${amount(value + unsure, unit)}`,
    holds: value >= atLeast && value + unsure <= atMost,
  };
}

function describeBounds({ atMost, atLeast }: Allowed, unit: string): string {
  if (atMost === undefined && atLeast === undefined) return 'anything';
  if (atMost === undefined) return `at least ${amount(atLeast!, unit)}`;
  if (atLeast === undefined) return `at most ${amount(atMost, unit)}`;
  return atLeast === atMost ? `exactly ${amount(atMost, unit)}` : `${atLeast} to ${amount(atMost, unit)}`;
}

/** `1 call`, `2 calls`, `1 ms`. */
const amount = (value: number, unit: string): string =>
  `${value} ${value === 1 && unit !== 'ms' ? unit.slice(0, -1) : unit}`;

function compareDeferred(expected: readonly string[], seen: readonly string[]): Row {
  const text = (names: readonly string[]): string => (names.length === 0 ? 'nothing' : names.toSorted().join(', '));
  return { what: 'deferred', allowed: text(expected), seen: text(seen), holds: text(expected) === text(seen) };
}

function describeCalls({ upstream, unplacedCalls }: SeenWork, unplaced: Unplaced, named: readonly string[]): string[] {
  const rows = upstream.toSorted((a, b) => b.calls - a.calls);
  const lines = rows.map(({ target, calls, wallMs, errors }) => [
    target,
    amount(calls, 'calls'),
    `${wallMs.toFixed(1)} ms${errors === 0 ? '' : `, ${errors} failed`}`,
  ]);
  const unsure = named.filter((target) => (unplaced.get(target) ?? 0) > 0);
  return [
    ...(lines.length === 0 ? ['  none'] : table(lines)),
    ...(unplacedCalls === 0
      ? []
      : [`  ${unplacedCalls} more began meanwhile, and no request is known to have made them`]),
    ...unsure.map(
      (target) =>
        `  ${target}: ${amount(unplaced.get(target)!, 'calls')} without a request may be this one's. perf.timed() places them, with Prisma in $extends()`,
    ),
  ];
}

function table(lines: readonly (readonly string[])[]): string[] {
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  return lines.map((line) => `  ${line.map((cell, i) => cell.padEnd(widths[i]!)).join('   ')}`.trimEnd());
}
