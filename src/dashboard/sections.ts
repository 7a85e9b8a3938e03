import type { UserUse } from '../core/snapshot.js';
import { findProblems, type Situation } from './problems.js';
import type { Sections } from './view.js';

const MAX_UPSTREAMS = 60;
const MAX_COMPRESSED = 20;
const MAX_CALLERS = 5;

/** Sections that do not come from the situation. `users`: as they are shown. */
type Others = Pick<Sections, 'failedWork' | 'experiments' | 'past'> & { readonly users: UserUse[] };

/** The sections of one pod, empty for all pods. */
export const NO_SECTIONS: Sections = {
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

export function collectSections(situation: Situation, others: Others): Sections {
  const { snapshot, blocks, rejected } = situation;
  const { eventLoop, resources, defer, upstream, compression } = snapshot;
  return {
    now: findProblems(situation),
    eventLoop,
    blocks: blocks.map(({ row }) => row),
    resources,
    defer,
    rejected,
    upstream: largest(upstream, MAX_UPSTREAMS, ({ calls, durationMs }) => calls * durationMs.mean).map((target) => ({
      ...target,
      routes: largest(target.routes, MAX_CALLERS, ({ wallMs }) => wallMs),
    })),
    compression: compression && {
      ...compression,
      routes: largest(compression.routes, MAX_COMPRESSED, ({ bytesIn, bytesOut }) => bytesIn - bytesOut),
    },
    ...others,
  };
}

const largest = <T>(items: readonly T[], max: number, sizeOf: (item: T) => number): T[] =>
  [...items].sort((a, b) => sizeOf(b) - sizeOf(a)).slice(0, max);
