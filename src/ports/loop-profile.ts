import type { Route } from '../request/routes.js';
import type { Estimate } from '../core/snapshot.js';

/** How much of the event loop routes take, from samples of the main thread in the last 5 to 10 minutes. Not provided with `eventLoop.profile: false`. */
export abstract class LoopShares {
  /** CPU milliseconds on the main thread of one request of these routes; null before there are 20 samples. */
  abstract ownCpuMs(routes: readonly Route[]): Estimate | null;
  /** Share of the time in which the loop ran code of these routes, 0 to 1. */
  abstract shareOfLoop(routes: readonly Route[]): number;
  /** Milliseconds of the loop that a route has taken since the application started. Null while nothing is sampled. */
  abstract sampledMs(route: Route): number | null;
}

/** Stacks of the main thread by route. */
export interface Profile {
  /** All samples, of every route. */
  readonly samples: number;
  /** Samples in which the loop waited for events. None are taken while no request is in flight. */
  readonly idle: number;
  /**
   * The busiest first. `route` is `'GET /users/:id'`, `'GET (no route)'` where none matched, or `'background'`: in no request's
   * context, or in that of one that has ended long ago. `share` is the share of the time in which the loop ran its code, 0 to 1.
   */
  readonly routes: readonly { readonly route: string; readonly samples: number; readonly share: number }[];
  /** The JSON of a `.cpuprofile`, with the routes as the outermost calls: for Chrome's DevTools, VS Code and speedscope. */
  toCpuProfile(): object;
}

/** Makes profiles of an application. */
export abstract class Profiler {
  /** `seconds` null: of the last 5 to 10 minutes. `route` null: of all. */
  abstract profile(options: { readonly route: string | null; readonly seconds: number | null }): Promise<Profile>;
}
