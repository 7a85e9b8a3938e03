import { MAX_POINTS, type DashboardData, type RouteRow, type Sections } from '../view.js';

/** All that the server has told so far. */
export interface State extends Omit<DashboardData, 'routes' | 'gone' | 'sections' | 'whole'> {
  readonly routes: ReadonlyMap<number, RouteRow>;
  readonly sections: Sections;
}

const NO_SECTIONS: Sections = {
  now: [],
  eventLoop: null,
  blocks: [],
  resources: null,
  defer: null,
  failedWork: [],
  rejected: [],
  upstream: [],
  users: [],
  compression: null,
  experiments: [],
  past: { rows: [], releases: [] },
};

/** What is known after one more answer. */
export function merged(before: State | null, answer: DashboardData): State {
  const known = answer.whole ? null : before;
  const routes = new Map(known?.routes);
  for (const id of answer.gone) routes.delete(id);
  for (const row of answer.routes) routes.set(row.id, row);
  return {
    ...answer,
    routes,
    sections: { ...(known?.sections ?? NO_SECTIONS), ...answer.sections },
    traffic: appended(known?.traffic ?? [], answer.traffic),
    container: appended(known?.container ?? [], answer.container),
  };
}

function appended<P extends readonly [number, ...unknown[]]>(known: readonly P[], fresh: readonly P[]): P[] {
  const last = known.at(-1)?.[0] ?? 0;
  return [...known, ...fresh.filter(([at]) => at > last)].slice(-MAX_POINTS);
}
