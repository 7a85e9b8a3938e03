import { Route, type RouteHandler } from '../core/route.js';

/** Called for each new route, before it serves. */
export type RouteListener = (route: Route) => void;

/** The routes of one application. */
export class Routes {
  readonly all: Route[] = [];
  private readonly listeners: RouteListener[] = [];
  private unmatchedRoute: Route | null = null;

  /** Hears of each route made from now on. */
  listen(listener: RouteListener): void {
    this.listeners.push(listener);
  }

  create(method: string, pattern: string, handler: RouteHandler | null): Route {
    return new Route(method, pattern, handler, this.announce);
  }

  /** The one entry that all requests without a route share. */
  get unmatched(): Route {
    return (this.unmatchedRoute ??= this.create('GET', '', null));
  }

  private readonly announce = (route: Route): void => {
    this.all.push(route);
    for (const listener of this.listeners) listener(route);
  };
}
