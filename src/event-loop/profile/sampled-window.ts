import { routeName, type Route } from '../../request/routes.js';
import type { Sample } from '../sample.js';
import type { SampledRequests } from './own-cpu.js';
import { StackTree } from './stack-tree.js';

const BACKGROUND = 'background';

/** Counts of one route; `requests` had their first sample in this window. */
interface RouteCounts extends SampledRequests {
  samples: number;
  ms: number;
  squaredMs: number;
  requests: number;
  ended: number;
}

export class SampledWindow {
  samples = 0;
  idle = 0;
  readonly routes = new Map<Route | null, RouteCounts>();
  readonly stacks: StackTree;

  constructor(
    readonly sinceMs: number,
    maxNodes: number,
  ) {
    this.stacks = new StackTree(maxNodes);
  }

  addIdle(): void {
    this.samples += 1;
    this.idle += 1;
  }

  add(route: Route | null, { frames, cut }: Sample, ms: number): RouteCounts {
    this.samples += 1;
    this.stacks.add(labelRoute(route), frames, cut, ms);
    const counts = this.count(route);
    counts.samples += 1;
    counts.ms += ms;
    return counts;
  }

  count(route: Route | null): RouteCounts {
    let counts = this.routes.get(route);
    if (counts === undefined)
      this.routes.set(route, (counts = { samples: 0, ms: 0, squaredMs: 0, requests: 0, ended: 0 }));
    return counts;
  }
}

export const labelRoute = (route: Route | null): string => (route === null ? BACKGROUND : routeName(route));
