import { getOrAdd } from '../core/get-or-add.js';
import { PerfError } from '../core/perf.error.js';

/** The controller method behind a route. One object per method and application. */
export interface RouteHandler {
  /** `'UsersController.findOne'` */
  readonly name: string;
  /** `@SkipPerf()` decorates the method or its class. */
  readonly skipped: boolean;
  /** The milliseconds of `@SlowMs()`; null: the application's option counts. */
  readonly slowMs: number | null;
}

/** One method and pattern of the application, made when the framework registers it. */
export class Route {
  /** `'GET /users/:id'`; `'GET (no route)'` where none matched. */
  readonly name: string;
  /** One of the module's own paths, such as `/metrics`: it is neither measured nor recorded. */
  isOwn = false;
  /** `latency.ignore` names it. */
  ignored = false;
  /** Counts of latency, to which the event loop adds what its requests have blocked; null while it is not measured. */
  stats: { blockedMs: number } | null = null;
  /** Sums of its requests' times: a `RouteTimes` of src/upstream, which this folder may not import; null before one has ended. */
  times: object | null = null;
  private otherMethods: Map<string, Route> | null = null;

  constructor(
    readonly method: string,
    /** `/users/:id`; `''` for requests that no route matched. */
    readonly pattern: string,
    readonly handler: RouteHandler | null,
    /** Called with each new Route, also with those of {@link forMethod}. */
    private readonly announce: (route: Route) => void,
  ) {
    this.name = `${method} ${pattern === '' ? '(no route)' : pattern}`;
    announce(this);
  }

  /** This route for the method of a request: another than its own with `@All()`, and for the HEAD that comes with each GET. */
  forMethod(requestMethod: string | undefined): Route {
    if (requestMethod === this.method) return this;
    const method = methodLabel(requestMethod);
    if (method === this.method) return this;
    this.otherMethods ??= new Map();
    return getOrAdd(this.otherMethods, method, () => new Route(method, this.pattern, this.handler, this.announce));
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

/** Neither `latency.ignore` nor `@SkipPerf()` leaves it out. */
export const isMeasured = (route: Route): boolean => route.handler?.skipped !== true && !route.ignored;

/** Stands for a route that Nest has not registered. */
export const NO_STARTS: ReadonlySet<string> = new Set();

/** Routes beside Nest's: a mounted router's path contains what clients sent, so their number is bounded. */
const MAX_FRAMEWORK_ROUTES = 200;

/** The routes of an application: each is made when a request first reaches it. */
export class Routes {
  readonly all: Route[] = [];
  /** The controller's method behind a request method (`'GET'`, …, or `'ALL'`) and a path of Nest's. Set once controllers are known. */
  findHandler: (method: string, pattern: string, starts?: ReadonlySet<string>) => RouteHandler | null = () => null;
  /** Lists what Nest may have put before a handler's own path. Set once controllers are known. */
  pathStarts: ReadonlySet<string> = NO_STARTS;
  /** Called with each new route before it serves: latency sets it, to give the route its counts. Never throws. */
  measure: (route: Route) => void = () => {};
  private unmatchedRoute: Route | null = null;
  /** By declared method, then by pattern. */
  private readonly ofNest = new Map<string, Map<string, Route>>();
  private readonly ofFramework = new Map<string, Route>();
  private besideNest = 0;
  private readonly ownPaths = new Set<string>();

  /**
   * Makes the route of one of the module's own paths, which no list of routes contains.
   * @throws PERF_ERR_OPTION for a path that another part serves: Express would answer with the first one
   */
  createOwn(path: string): Route {
    if (this.ownPaths.has(path)) {
      throw new PerfError(
        'PERF_ERR_OPTION',
        `Two parts of this module serve GET ${path}. Give \`dashboard\`, which also serves \`/data\` and \`/profile\` below its path, ` +
          '`snapshotEndpoint` and each sink, as `prometheusSink()`, a `path` of its own.',
      );
    }
    this.ownPaths.add(path);
    const route = new Route('GET', path, null, () => {});
    route.isOwn = true;
    return route;
  }

  create(method: string, pattern: string, handler: RouteHandler | null): Route {
    return new Route(method, pattern, handler, this.announce);
  }

  /** The route that Nest has registered for a method (`'ALL'` for `@All()`) and a path. */
  findNestRoute(method: string, pattern: string): Route {
    let routes = this.ofNest.get(method);
    if (routes === undefined) this.ofNest.set(method, (routes = new Map()));
    const known = routes.get(pattern);
    if (known !== undefined) return known;
    const route = this.create(methodLabel(method), pattern, this.findHandler(method, pattern));
    routes.set(pattern, route);
    return route;
  }

  /**
   * The route that the framework has matched: Nest's, where the end of it is a handler's own path, and `starts`, where it is given,
   * has what stands before. Null when too many others are known already.
   */
  findFrameworkRoute(method: string | undefined, pattern: string, starts?: ReadonlySet<string>): Route | null {
    const label = methodLabel(method);
    const key = `${label} ${pattern}`;
    const known = this.ofFramework.get(key);
    if (known !== undefined) return known;
    const methods = [label, ...(label === 'HEAD' ? ['GET'] : []), 'ALL'];
    const declared = methods.find((one) => this.findHandler(one, pattern, starts) !== null);
    const route =
      declared === undefined
        ? this.createBesideNest(label, pattern)
        : this.findNestRoute(declared, pattern).forMethod(method);
    if (route !== null) this.ofFramework.set(key, route);
    return route;
  }

  private createBesideNest(method: string, pattern: string): Route | null {
    if (this.besideNest === MAX_FRAMEWORK_ROUTES) return null;
    this.besideNest += 1;
    return this.create(method, pattern, null);
  }

  /** The one entry that all requests without a route share. */
  get unmatched(): Route {
    return (this.unmatchedRoute ??= this.create('GET', '', null));
  }

  private readonly announce = (route: Route): void => {
    this.all.push(route);
    this.measure(route);
  };
}
