import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { MonotonicClock } from '../core/clock.js';
import type { OncePerCause } from '../core/reporter.js';
import { RequestState, type EndListener, type GateCheck, type RequestOwner } from '../core/request-state.js';
import type { Route } from '../core/route.js';
import { RequestScopedArounds } from './around.js';
import type { RouteRegistry } from './route-registry.js';

const STATE: unique symbol = Symbol('perf:state');
/** On a connection: its newest request, null once that was served. */
const NEWEST: unique symbol = Symbol('perf:newest');
/** On a connection: a lifecycle that has it in its list. Only the last one, where it carries requests of two applications. */
const LISTED_BY: unique symbol = Symbol('perf:listed-by');

interface Connection extends Socket {
  [NEWEST]?: RequestState | null;
  [LISTED_BY]?: RequestLifecycle;
  /** Of a server's HTTP/1 connection: Node's own, and the request that it has read last. */
  readonly parser?: { readonly incoming: IncomingMessage | null } | null;
}
interface Marked {
  [STATE]?: RequestState;
  /** Fastify's objects hold Node's. */
  raw?: Marked;
  /** A response holds its request. */
  req?: Marked;
}

/** The state of a request, from the raw request or response or from Fastify's; null when it is not observed. */
export function stateOf(requestOrResponse: unknown): RequestState | null {
  const given = requestOrResponse as Marked | null | undefined;
  if (given === null || given === undefined) return null;
  const raw = given.raw ?? given;
  return raw[STATE] ?? raw.req?.[STATE] ?? null;
}

/** The same for Node's request, at the price of one property. */
export const stateOfMessage = (request: IncomingMessage): RequestState | null => (request as Marked)[STATE] ?? null;

/** The lifecycle that a request belongs to: its application. */
export const lifecycleOf = (state: RequestState): RequestLifecycle => state.owner as RequestLifecycle;

/** What a feature may do when a request starts and when it has ended. Runs on the request path. */
export interface RequestObserver {
  started?(state: RequestState): void;
  /** Once, when the response was handed to the operating system or its connection has closed: status, outcome and duration are final. */
  ended?(state: RequestState): void;
}

interface StartListener {
  started(state: RequestState): void;
}

/** Hears, before every other, of starts and ends from a time on that it sets itself, and of each request that ends before its route function has settled. */
export interface PacedObserver extends StartListener, EndListener {
  /** Monotonic milliseconds. */
  readonly dueMs: number;
}

/** As Node has it, whatever the application has made of `Set` since. */
const forEach: <T>(set: ReadonlySet<T>, visit: (value: T) => void) => void = Function.prototype.call.bind(
  // eslint-disable-next-line typescript/unbound-method -- its `this` is given by `call`
  Set.prototype.forEach,
);

/** How a framework tells the route of a request. */
export type RouteFinder = (state: RequestState) => Route | null;

/**
 * Start and end of every request, each exactly once, and the list of those in flight.
 * A request starts at the server's `request` event. It ends, completed, when its last data was handed to the operating system,
 * or, aborted, when its connection closes before.
 */
export class RequestLifecycle implements RequestOwner {
  deferrer: unknown = null;
  readonly requestScoped = new RequestScopedArounds();
  /** Set by the experiments feature. */
  gates: GateCheck | null = null;
  private readonly starting: StartListener[] = [];
  private readonly ending: EndListener[] = [];
  private paced: PacedObserver | null = null;
  /** Connections of Node's HTTP/1 server that have carried a request: each holds those of its own that are in flight. */
  private readonly connections = new Set<Connection>();
  /** In flight, and not on such a connection. */
  private readonly others = new Set<RequestState>();
  private inFlightCount = 0;
  private sequence = 0;
  private readonly idPrefix = Math.random().toString(36).slice(2, 10);
  private waiters: (() => void)[] = [];
  private findRouteOf: RouteFinder = () => null;

  constructor(
    private readonly nowMs: MonotonicClock,
    private readonly routes: RouteRegistry,
    private readonly report: OncePerCause,
  ) {}

  /** Adds an observer; they are called in the order in which they were added. */
  observe(observer: RequestObserver): void {
    if (hearsStart(observer)) this.starting.push(observer);
    if (hearsEnd(observer)) this.ending.push(observer);
  }

  /** Sets the one observer that paces itself. */
  observePaced(observer: PacedObserver): void {
    this.paced = observer;
  }

  /** The adapter's way to tell a route; asked only when somebody needs it. */
  findRoutesWith(finder: RouteFinder): void {
    this.findRouteOf = finder;
  }

  findRoute(state: RequestState): Route | null {
    return this.findRouteOf(state);
  }

  nextId(): string {
    this.sequence += 1;
    return `${this.idPrefix}-${this.sequence.toString(36)}`;
  }

  get inFlight(): number {
    return this.inFlightCount;
  }

  /** Requests in flight, oldest first. */
  states(): RequestState[] {
    const states = [...this.others];
    for (const connection of this.connections) {
      // Most connections wait for a request.
      if (connection[NEWEST] === null) continue;
      for (const state of unanswered(connection)) if (state.owner === this) states.push(state);
    }
    return states.sort((a, b) => a.startedMs - b.startedMs);
  }

  /** Calls `visit` for each request in flight, in no order and without copies: a look asks inside its interrupt. */
  readonly eachInFlight = (visit: (state: RequestState) => void): void => {
    forEach(this.others, visit);
    forEach(this.connections, (connection) => {
      for (let state = connection[NEWEST] ?? null; state !== null && !state.closed; state = state.ahead) {
        if (state.owner === this) visit(state);
      }
    });
  };

  /** Starts a request; called again for the same one it returns the same state. */
  readonly start = (request: IncomingMessage, response: ServerResponse): RequestState => {
    const known = (request as Marked)[STATE];
    if (known !== undefined) return known;
    const state = this.open(request, response);
    (request as Marked)[STATE] = state;
    const connection = request.socket as Connection | null | undefined;
    if (isRead(connection, request, response) || isNodes(connection, response)) {
      this.watchServed(connection!, response, state);
      return state;
    }
    // HTTP/2, `inject()`, and requests that somebody has made without a connection.
    this.others.add(state);
    (response as Marked)[STATE] = state;
    response.on('finish', this.onFinish);
    response.on('close', this.onClose);
    return state;
  };

  /**
   * Hears of the end of a response of Node's HTTP/1 server, at the price of a property instead of a listener for its `close`. Who
   * leaves is heard of by one listener a connection; of requests that wait behind another one, `close` would never tell.
   */
  private watchServed(connection: Connection, response: ServerResponse, state: RequestState): void {
    response.detachSocket = this.detachSocket;
    if (connection[LISTED_BY] !== this) this.list(connection);
    const newest = connection[NEWEST];
    if (newest !== null && newest !== undefined) state.ahead = newest;
    connection[NEWEST] = state;
  }

  private list(connection: Connection): void {
    connection[LISTED_BY] = this;
    if (this.connections.has(connection)) return;
    this.connections.add(connection);
    connection.on('close', this.onConnectionClosed);
  }

  /** Starts a scope that has no HTTP response of its own; {@link end} must be called for it. */
  begin(): RequestState {
    const state = this.open(null, null);
    this.others.add(state);
    return state;
  }

  private open(request: IncomingMessage | null, response: ServerResponse | null): RequestState {
    const startedMs = this.nowMs();
    const state = new RequestState(request, response, startedMs, this);
    this.inFlightCount += 1;
    const { paced, starting } = this;
    if (paced !== null && startedMs >= paced.dueMs) this.tellStart(state, paced);
    for (let i = 0; i < starting.length; i++) this.tellStart(state, starting[i]!);
    return state;
  }

  private tellStart(state: RequestState, observer: StartListener): void {
    try {
      observer.started(state);
    } catch (error) {
      this.observerFailed(error);
    }
  }

  /** Ends a request or scope. A second call changes nothing. */
  end(state: RequestState, status: number, aborted: boolean): void {
    if (state.closed) return;
    state.closed = true;
    if (state.endedMs === 0) state.endedMs = this.nowMs();
    state.aborted = aborted;
    state.status = status;
    state.route ??= this.routes.unmatched.forMethod(state.request?.method);
    this.inFlightCount -= 1;
    if (this.others.size > 0) this.others.delete(state);
    const { paced, ending } = this;
    const { routeCall } = state;
    const goesOn = routeCall !== null && !routeCall.settled;
    if (paced !== null && (goesOn || state.endedMs >= paced.dueMs)) this.tellEnd(state, paced);
    for (let i = 0; i < ending.length; i++) this.tellEnd(state, ending[i]!);
    if (state.deferred !== null) this.tellEnd(state, state.deferred);
    if (this.waiters.length > 0) this.wakeIfSettled();
  }

  private tellEnd(state: RequestState, observer: EndListener): void {
    try {
      observer.ended(state);
    } catch (error) {
      this.observerFailed(error);
    }
  }

  /** Resolves when no request whose response has been ended is still in flight. Open streams are not waited for. */
  async settled(): Promise<void> {
    if (this.isSettled()) return;
    await new Promise<void>((resolve) => this.waiters.push(resolve));
  }

  private isSettled(): boolean {
    return !this.states().some(({ response }) => response?.writableEnded === true);
  }

  private wakeIfSettled(): void {
    if (!this.isSettled()) return;
    const waiters = this.waiters;
    this.waiters = [];
    for (const wake of waiters) wake();
  }

  // One function for all responses, told apart by `this`: no closure a request.

  /** Node's HTTP/1 server takes a response off its connection once the last of it was written. */
  private readonly detachSocket = ((lifecycle: RequestLifecycle) =>
    function (this: ServerResponse, connection: Connection): void {
      ServerResponse.prototype.detachSocket.call(this, connection);
      const state = (this.req as Marked)[STATE];
      if (state === undefined) return;
      if (connection[NEWEST] === state) connection[NEWEST] = null;
      state.ahead = null;
      lifecycle.end(state, this.statusCode, false);
    })(this);

  private readonly onConnectionClosed = ((lifecycle: RequestLifecycle) =>
    function (this: Connection): void {
      endUnanswered(this);
      lifecycle.connections.delete(this);
    })(this);

  private readonly onFinish = ((lifecycle: RequestLifecycle) =>
    function (this: ServerResponse): void {
      const state = (this as Marked)[STATE];
      if (state === undefined) return;
      state.finished = true;
      state.endedMs = lifecycle.nowMs();
    })(this);

  private readonly onClose = ((lifecycle: RequestLifecycle) =>
    function (this: ServerResponse): void {
      const state = (this as Marked)[STATE];
      if (state === undefined) return;
      const aborted = !state.finished || wasReset(this);
      lifecycle.end(state, aborted && !this.headersSent ? 499 : this.statusCode, aborted);
    })(this);

  private observerFailed(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.report.report(
      `request observer failed: ${reason}`,
      `A request observer failed: ${reason}. The request is not affected.`,
    );
  }
}

/** Whether the connection's HTTP/1 parser is just handing out this request: so it is at the server's `request` event. */
const isRead = (
  connection: Connection | null | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): boolean =>
  connection?.parser?.incoming === request && response.detachSocket === ServerResponse.prototype.detachSocket;

/** The same for who starts a request later. Dearer: V8 looks up a prototype in a call out of compiled code. */
const isNodes = (connection: Connection | null | undefined, response: ServerResponse): boolean =>
  Object.getPrototypeOf(response) === ServerResponse.prototype && typeof connection?.on === 'function';

const hearsStart = (observer: RequestObserver): observer is StartListener => observer.started !== undefined;
const hearsEnd = (observer: RequestObserver): observer is EndListener => observer.ended !== undefined;

/** The requests of a connection that are in flight, oldest first. */
function unanswered(connection: Connection): RequestState[] {
  const open: RequestState[] = [];
  for (let state = connection[NEWEST] ?? null; state !== null && !state.closed; state = state.ahead) open.push(state);
  return open.reverse();
}

/** Ends what a closed connection leaves unanswered, of every application on it; until then each is found in flight. */
function endUnanswered(connection: Connection): void {
  const open = unanswered(connection);
  for (const state of open) {
    const { headersSent, statusCode } = state.response!;
    lifecycleOf(state).end(state, headersSent ? statusCode : 499, true);
  }
  connection[NEWEST] = null;
  for (const state of open) state.ahead = null;
}

/** HTTP/2 fires `finish` before `close` even when the client has cancelled the stream; the stream knows better. */
function wasReset(response: ServerResponse): boolean {
  const stream = (response as { stream?: { aborted?: boolean; rstCode?: number } }).stream;
  return stream !== undefined && (stream.aborted === true || (stream.rstCode ?? 0) !== 0);
}
