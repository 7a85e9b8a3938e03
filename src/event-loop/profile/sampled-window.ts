import { entryOf } from '../../core/entry-of.js';
import { routeName, type Route } from '../../request/routes.js';
import type { Sample } from '../sample.js';
import { StackTree } from './stack-tree.js';

/** In no request's context. */
export const BACKGROUND = 'background';

/** Samples of one route. */
export class RouteSamples {
  samples = 0;
  ms = 0;
  /** See {@link SampledRequests}. */
  squaredMs = 0;
  /** Requests that had their first sample here. */
  requests = 0;
}

/** All samples of a stretch of time. */
export class SampledWindow {
  samples = 0;
  idle = 0;
  /** Null: in no request's context. */
  readonly routes = new Map<Route | null, RouteSamples>();
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

  /** `ms`: what the sample represents. */
  add(route: Route | null, { frames, cut }: Sample, ms: number): RouteSamples {
    this.samples += 1;
    this.stacks.add(labelRoute(route), frames, cut, ms);
    const own = entryOf(this.routes, route, () => new RouteSamples());
    own.samples += 1;
    own.ms += ms;
    return own;
  }
}

export const labelRoute = (route: Route | null): string => (route === null ? BACKGROUND : routeName(route));
