import type { UserUse } from '../core/snapshot.js';
import { problemsOf, type Situation } from './problems.js';
import type { Sections } from './view.js';

const MAX_UPSTREAMS = 60;
const MAX_COMPRESSED = 20;
const MAX_CALLERS = 5;

/** Sections that the situation does not hold. `users`: as they are shown. */
type Others = Pick<Sections, 'failedWork' | 'experiments' | 'past'> & { readonly users: UserUse[] };

/** Sections of one pod have nothing to tell of all. */
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

export function sectionsOf(situation: Situation, others: Others): Sections {
  const { snapshot, blocks, rejected } = situation;
  const { eventLoop, resources, defer, upstream, compression } = snapshot;
  return {
    now: problemsOf(situation),
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
