import { attach, Attachable } from './attachment.js';
import { entryOf } from './entry-of.js';
import { tellAll } from './listeners.js';
import type { OncePerCause } from './reporter.js';

/** The controller method behind a route. One object per method and application. */
export interface RouteHandler {
  readonly className: string;
  readonly methodName: string;
  /** `'UsersController.findOne'` */
  readonly name: string;
  /** `@SkipPerf()` stands on the method or its class. */
  readonly skipped: boolean;
  /** `@SlowMs()` stands on the method or its class, milliseconds; null: what the application says counts. */
  readonly slowMs: number | null;
}

/** One method and pattern of the application, made when the framework registers it. */
export class Route extends Attachable {
  private otherMethods: Map<string, Route> | null = null;

  constructor(
    readonly method: string,
    /** `/users/:id`; `''` for requests that no route matched. */
    readonly pattern: string,
    readonly handler: RouteHandler | null,
    /** Called once for each new Route, also for those of further methods. */
    private readonly announce: (route: Route) => void,
  ) {
    super();
    announce(this);
  }

  /** This route for the method of a request: another than its own with `@All()`, and for the HEAD that comes with each GET. */
  forMethod(requestMethod: string | undefined): Route {
    if (requestMethod === this.method) return this;
    const method = methodLabel(requestMethod);
    if (method === this.method) return this;
    this.otherMethods ??= new Map();
    return entryOf(this.otherMethods, method, () => new Route(method, this.pattern, this.handler, this.announce));
  }
}

/** The methods of RFC 9110 and 5789, and those Nest can register. Others are counted as `_OTHER`, as OpenTelemetry does. */
const KNOWN_METHODS = new Set(
  'GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH SEARCH PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK QUERY'.split(
    ' ',
  ),
);

/** A method that is safe as a label: HTTP/2 clients may send any token. */
export const methodLabel = (method: string | undefined): string =>
  method !== undefined && KNOWN_METHODS.has(method) ? method : '_OTHER';

/** A route in one text: `'GET /users/:id'`; `'GET (no route)'` where none matched. */
export const routeName = ({ method, pattern }: Route): string => `${method} ${pattern === '' ? '(no route)' : pattern}`;

/** Who sums up the event-loop milliseconds that requests of a route are proven to have blocked. */
export const ROUTE_BLOCKS = attach<{ blocked(ms: number): void }>('route');

/** Set on a route that `latency.ignore` names. */
export const IGNORED = attach<true>('route');

/** Neither `latency.ignore` nor `@SkipPerf()` leaves it out. */
export const isMeasured = (route: Route): boolean => route.handler?.skipped !== true && IGNORED.get(route) === null;

export class Routes {
  readonly all: Route[] = [];
  private readonly listeners: ((route: Route) => void)[] = [];
  private unmatchedRoute: Route | null = null;

  constructor(private readonly report: OncePerCause) {}

  /** Hears of each route made from now on, before it serves. */
  listen(listener: (route: Route) => void): void {
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
    tellAll(this.listeners, route, this.report, 'a listener to routes');
  };
}
