import type { PerfService, RequestRecord } from 'nestjs-perf';

/** The answer in words: the slower route, us or them, and for whom. */
export function* tell(
  before: readonly RequestRecord[],
  after: readonly RequestRecord[],
  perf: PerfService,
): Generator<string> {
  const p95Ms = computeP95(after);
  yield `P95 of GET /insights rose from ${ms(computeP95(before))} to ${ms(p95Ms)}.`;

  const slow = after.filter(({ durationMs }) => durationMs >= p95Ms);
  const tookMs = mean(slow, ({ durationMs }) => durationMs);
  // While our own loop was busy, their answer may have been there already.
  const waitedMs = mean(slow, ({ time }) => (time === null ? 0 : time.upstreamMs - time.upstreamBusyMs));
  const theirs = waitedMs / tookMs;
  yield `Is it us or them? ${theirs > 0.5 ? 'Them' : 'Us'}: the slowest requests take ${ms(tookMs)}, and for ${ms(waitedMs)} of it (${percent(theirs)}) we only wait for others.`;

  const [target, targetMs] = heaviest(slow.flatMap(({ upstream }) => upstream ?? []));
  yield `Who are they? ${target}: ${ms(targetMs / slow.length)} of each of them.`;

  const users = perf.users({ by: 'totalMs', route: 'GET /insights' });
  const first = users[0]!;
  const ofTime = first.totalMs / sum(users, ({ totalMs }) => totalMs);
  const ofRequests = first.count / sum(users, ({ count }) => count);
  yield `For whom? ${first.unit}: ${percent(ofTime)} of the route's time, with ${percent(ofRequests)} of its requests.`;

  const own = perf.snapshot().routes.find(({ route }) => route === '/insights')?.time?.ownCpuMs ?? null;
  if (own !== null) {
    const [low, high] = own.ci;
    yield `Our own work is ${own.mean.toFixed(1)} ms a request (95 % interval ${low.toFixed(1)} to ${high.toFixed(1)} ms).`;
  }
}

/** The target that took most time, and how much. */
function heaviest(uses: readonly { target: string; wallMs: number }[]): readonly [string, number] {
  const byTarget = new Map<string, number>();
  for (const { target, wallMs } of uses) byTarget.set(target, (byTarget.get(target) ?? 0) + wallMs);
  return [...byTarget].toSorted(([, a], [, b]) => b - a)[0] ?? ['nobody', 0];
}

function computeP95(requests: readonly RequestRecord[]): number {
  const sorted = requests.map(({ durationMs }) => durationMs).toSorted((a, b) => a - b);
  return sorted[Math.ceil(0.95 * sorted.length) - 1]!;
}

const sum = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((total, item) => total + of(item), 0);
const mean = <T>(items: readonly T[], of: (item: T) => number): number => sum(items, of) / items.length;
const ms = (value: number): string => `${value.toFixed(0)} ms`;
const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;
