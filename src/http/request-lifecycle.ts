import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { MonotonicClock } from '../core/clock.js';
import type { OncePerCause } from '../core/reporter.js';
import { RequestState, type GateCheck, type RequestOwner } from '../core/request-state.js';
import type { Route } from '../core/route.js';
import { RequestScopedArounds } from './around.js';
import type { RouteRegistry } from './route-registry.js';

const STATE: unique symbol = Symbol('perf:state');
/** On a connection: its newest request, null once that was served. */
const NEWEST: unique symbol = Symbol('perf:newest');

interface Connection extends Socket {
  [NEWEST]?: RequestState | null;
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
  private readonly starting: Required<Pick<RequestObserver, 'started'>>[] = [];
  private readonly ending: Required<Pick<RequestObserver, 'ended'>>[] = [];
  private newest: RequestState | null = null;
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
    const states: RequestState[] = [];
    for (let state = this.newest; state !== null; state = state.previous) states.push(state);
    return states.toReversed();
  }

  /** Starts a request; called again for the same one it returns the same state. */
  readonly start = (request: IncomingMessage, response: ServerResponse): RequestState => {
    const known = (request as Marked)[STATE];
    if (known !== undefined) return known;
    const state = this.begin(request, response);
    (request as Marked)[STATE] = state;
    const connection = request.socket as Connection | null | undefined;
    if (isRead(connection, request, response) || isNodes(connection, response)) {
      this.watchServed(connection!, response, state);
      return state;
    }
    // HTTP/2, `inject()`, and requests that somebody has made without a connection.
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
    const newest = connection[NEWEST];
    if (newest === undefined) connection.on('close', onConnectionClosed);
    else if (newest !== null) state.ahead = newest;
    connection[NEWEST] = state;
  }

  /** Starts a scope that has no HTTP response of its own; {@link end} must be called for it. */
  begin(request: IncomingMessage | null, response: ServerResponse | null): RequestState {
    const state = new RequestState(request, response, this.nowMs(), this);
    state.previous = this.newest;
    if (this.newest !== null) this.newest.next = state;
    this.newest = state;
    this.inFlightCount += 1;
    for (const observer of this.starting) {
      try {
        observer.started(state);
      } catch (error) {
        this.observerFailed(error);
      }
    }
    return state;
  }

  /** Ends a request or scope. A second call changes nothing. */
  end(state: RequestState, status: number, aborted: boolean): void {
    if (state.closed) return;
    state.closed = true;
    if (state.endedMs === 0) state.endedMs = this.nowMs();
    state.aborted = aborted;
    state.status = status;
    state.route ??= this.routes.unmatched.forMethod(state.request?.method);
    this.unlink(state);
    for (const observer of this.ending) {
      try {
        observer.ended(state);
      } catch (error) {
        this.observerFailed(error);
      }
    }
    if (this.waiters.length > 0) this.wakeIfSettled();
  }

  /** Resolves when no request whose response has been ended is still in flight. Open streams are not waited for. */
  async settled(): Promise<void> {
    if (this.isSettled()) return;
    await new Promise<void>((resolve) => this.waiters.push(resolve));
  }

  private isSettled(): boolean {
    for (let state = this.newest; state !== null; state = state.previous)
      if (state.response?.writableEnded) return false;
    return true;
  }

  private wakeIfSettled(): void {
    if (!this.isSettled()) return;
    const waiters = this.waiters;
    this.waiters = [];
    for (const wake of waiters) wake();
  }

  private unlink(state: RequestState): void {
    if (state.previous !== null) state.previous.next = state.next;
    if (state.next === null) this.newest = state.previous;
    else state.next.previous = state.previous;
    state.previous = null;
    state.next = null;
    this.inFlightCount -= 1;
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

const hearsStart = (observer: RequestObserver): observer is Required<Pick<RequestObserver, 'started'>> =>
  observer.started !== undefined;
const hearsEnd = (observer: RequestObserver): observer is Required<Pick<RequestObserver, 'ended'>> =>
  observer.ended !== undefined;

/** Ends what a closed connection leaves unanswered, oldest first. */
function onConnectionClosed(this: Connection): void {
  const open: RequestState[] = [];
  for (let state = this[NEWEST] ?? null; state !== null && !state.closed; state = state.ahead) open.push(state);
  this[NEWEST] = null;
  for (let i = open.length - 1; i >= 0; i--) {
    const state = open[i]!;
    const { headersSent, statusCode } = state.response!;
    state.ahead = null;
    lifecycleOf(state).end(state, headersSent ? statusCode : 499, true);
  }
}

/** HTTP/2 fires `finish` before `close` even when the client has cancelled the stream; the stream knows better. */
function wasReset(response: ServerResponse): boolean {
  const stream = (response as { stream?: { aborted?: boolean; rstCode?: number } }).stream;
  return stream !== undefined && (stream.aborted === true || (stream.rstCode ?? 0) !== 0);
}
