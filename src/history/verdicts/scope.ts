import { getOrAdd } from '../../core/get-or-add.js';
import type { UserUse } from '../../core/snapshot.js';
import type { Verdict, VerdictReason } from '../../core/verdict.js';
import type { SiteSums } from '../compare/because.js';
import { RouteSums } from '../rows/window.js';
import { averageRoutes, type Assessment } from './assess.js';
import type { JudgedWindow } from './judged-window.js';

/** The part of the site that has changed, with the name of the pod, user or upstream. */
export interface Scope {
  readonly scope: Verdict['scope'];
  readonly name: string | null;
  /** In words: `'1 of 214'`, `'38 of 41 routes'`. */
  readonly detail: string | null;
}

export interface ScopeQuestion {
  readonly moved: readonly Assessment[];
  readonly all: readonly Assessment[];
  readonly before: SiteSums;
  readonly after: SiteSums;
  readonly windows: readonly JudgedWindow[];
  readonly because: readonly VerdictReason[];
  readonly listUsers: (route: string) => readonly UserUse[];
}

/** Share of the traffic on changed routes from which the whole site has changed. */
const SITE = 0.6;
const MIN_ROUTES_OF_SITE = 3;
/** Share of a change that one pod, user or upstream must explain (Bhagwan et al., "Adtributor", NSDI 2014). */
const EXPLAINS = 0.8;
const MAIN_PART = 0.6;
const SLOWER = 1.2;

/** The smallest part of the whole that explains the change. */
export function findScope(question: ScopeQuestion): Scope {
  return (
    findPod(question) ?? findSite(question) ?? findUser(question) ?? findUpstream(question) ?? describeRoutes(question)
  );
}

function findSite({ moved, all }: ScopeQuestion): Scope | null {
  const traffic = (of: readonly Assessment[]): number => of.reduce((sum, { count }) => sum + count, 0);
  if (all.length < MIN_ROUTES_OF_SITE || moved.length < 2 || traffic(moved) < SITE * traffic(all)) return null;
  return { scope: 'site', name: null, detail: `${moved.length} of ${all.length} routes` };
}

function describeRoutes({ moved, all }: ScopeQuestion): Scope {
  const others = all.length - moved.length;
  const unchanged = others === 0 ? null : `${others} other${others === 1 ? '' : 's'} unchanged`;
  return { scope: 'routes', name: null, detail: unchanged };
}

/** One pod has changed, and the others together hardly. */
function findPod({ moved, windows }: ScopeQuestion): Scope | null {
  const pods = findServing(moved, windows.at(-1)!);
  if (pods.length < 2) return null;
  const changes = pods.map((pod) => ({ pod, change: findChange(moved, windows, (name) => name === pod) }));
  const [most] = changes.toSorted((a, b) => Math.abs(b.change) - Math.abs(a.change));
  const others = findChange(moved, windows, (name) => name !== most!.pod);
  if (Math.abs(others) > (1 - EXPLAINS) * Math.abs(most!.change)) return null;
  return { scope: 'pod', name: most!.pod, detail: `1 of ${pods.length} pods` };
}

/** Pods that serve the changed routes for most of the window: in a deploy others begin or end in it. */
function findServing(moved: readonly Assessment[], { pods }: JudgedWindow): string[] {
  const serving = [...pods].filter(([, { routes }]) => moved.some(({ route }) => routes.has(route)));
  const mostMs = Math.max(...serving.map(([, { longestMs }]) => longestMs));
  return serving.filter(([, { longestMs }]) => longestMs >= mostMs / 2).map(([pod]) => pod);
}

/** Mean change of the changed routes in some of the pods, on the metric's scale. */
function findChange(
  moved: readonly Assessment[],
  windows: readonly JudgedWindow[],
  isOne: (pod: string) => boolean,
): number {
  const some = windows.flatMap(({ pods }) => [...pods].flatMap(([pod, window]) => (isOne(pod) ? [window] : [])));
  const observedMs = some.reduce((ms, { process }) => ms + process.observedMs, 0);
  const change = averageRoutes(moved, ({ route, rule, before }) => {
    const sums = new RouteSums();
    for (const { routes } of some) sums.add(routes.get(route) ?? new RouteSums());
    const level = sums.count === 0 ? null : rule.level({ at: windows[0]!.at, sums, observedMs });
    return level === null ? null : level - before;
  });
  return change ?? 0;
}

/** One user's requests take most of the added time, though most requests are of other users. */
function findUser({ moved, before, listUsers }: ScopeQuestion): Scope | null {
  const [{ rule }] = moved as [Assessment];
  if (rule.metric !== 'latency' && rule.metric !== 'over') return null;
  const added = new Map<string, { ms: number; count: number }>();
  let [totalMs, totalCount] = [0, 0];
  for (const { route } of moved) {
    const usual = before.routes.get(route);
    if (usual === undefined || usual.completed === 0) continue;
    for (const use of listUsers(route)) {
      const ms = use.totalMs - (use.count * usual.sumMs) / usual.completed;
      const ofUser = getOrAdd(added, use.unit, () => ({ ms: 0, count: 0 }));
      ofUser.ms += ms;
      ofUser.count += use.count;
      totalMs += ms;
      totalCount += use.count;
    }
  }
  const [first] = [...added].toSorted(([, a], [, b]) => b.ms - a.ms);
  if (first === undefined || added.size < 3 || totalMs <= 0) return null;
  const [unit, { ms, count }] = first;
  if (ms < EXPLAINS * totalMs || count > totalCount / 2) return null;
  return { scope: 'users', name: unit, detail: `1 of ${added.size}` };
}

/** One upstream is the main part, and each call takes longer: with more calls alone, the route has changed. */
function findUpstream({ because: [main], before, after }: ScopeQuestion): Scope | null {
  if (main?.part !== 'upstream' || main.share < MAIN_PART) return null;
  // `usualMs`: the present calls at their former duration, route by route.
  let [wallMs, usualMs] = [0, 0];
  for (const [route, { targets }] of after.routes) {
    const now = targets.get(main.name);
    const usual = before.routes.get(route)?.targets.get(main.name);
    if (now === undefined || usual === undefined || usual.calls === 0) continue;
    wallMs += now.wallMs;
    usualMs += (now.calls * usual.wallMs) / usual.calls;
  }
  const ratio = usualMs === 0 ? 0 : wallMs / usualMs;
  return ratio >= SLOWER || (ratio > 0 && ratio <= 1 / SLOWER)
    ? { scope: 'upstream', name: main.name, detail: null }
    : null;
}
