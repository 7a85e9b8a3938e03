import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Attachable } from '../core/attachment.js';
import type { MonotonicClock } from '../core/clock.js';
import { LinkedList } from '../core/linked-list.js';
import { tellAll } from '../core/listeners.js';
import { reasonOf } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import { requestContext, RequestState, type RequestOwner } from '../core/request-state.js';
import type { Route, Routes } from '../core/route.js';
import { listenShared } from '../core/shared-listener.js';
import type { Answer } from './answer.js';

const STATE: unique symbol = Symbol('perf:state');
/** The states that applications had of a request before it went on to another one. */
const PASSED: unique symbol = Symbol('perf:passed');
/** On a connection: its requests that came while another one was still being answered (pipelining). */
const QUEUED: unique symbol = Symbol('perf:queued');

interface Connection extends Socket {
  [QUEUED]?: Set<RequestState>;
}
interface Marked {
  [STATE]?: RequestState;
  [PASSED]?: RequestState[];
  /** Fastify's objects hold Node's. */
  raw?: Marked;
  /** A response holds its request. */
  req?: Marked;
}

/** The state of a request, from Node's request or response or from Fastify's; null when it is not observed. */
export function stateOf(requestOrResponse: unknown): RequestState | null {
  const given = requestOrResponse as Marked | null | undefined;
  if (given === null || given === undefined) return null;
  // Its own mark first: an application may keep something of its own in `raw`.
  return given[STATE] ?? given.req?.[STATE] ?? given.raw?.[STATE] ?? given.raw?.req?.[STATE] ?? null;
}

/** What a server framework knows of a request, and does for it. */
export interface RequestPlatform {
  /** The route that the framework has matched; null for none. May throw: it reads what an application can have changed. */
  findRoute(state: RequestState, routes: Routes): Route | null;
  answer(response: unknown, answer: Answer): void;
}

export const lifecycleOf = (state: RequestState): RequestLifecycle => state.owner as RequestLifecycle;

/** What a feature may do when a request starts and when it has ended. Runs on the request path. */
export interface RequestObserver {
  started?(state: RequestState): void;
  /** Once; status, outcome and duration are final. */
  ended?(state: RequestState): void;
  /** The same for a request that has gone on to another application, which measures it. */
  endedElsewhere?(state: RequestState): void;
}

/** Start and end of every request of one application, each exactly once, and those in flight. */
export class RequestLifecycle extends Attachable implements RequestOwner {
  /** Requests that have started since then enter the context store, monotonic milliseconds; Infinity: none do. */
  private contextSinceMs = Infinity;
  /** False: they never may (`context: false`). */
  contextAllowed = true;
  platform: RequestPlatform | null = null;
  private readonly starting: ((state: RequestState) => void)[] = [];
  private readonly ending: ((state: RequestState) => void)[] = [];
  private readonly endingElsewhere: ((state: RequestState) => void)[] = [];
  private readonly open = new LinkedList<RequestState>();
  private sequence = 0;
  private readonly idPrefix = Math.random().toString(36).slice(2, 10);
  private waiters: (() => void)[] = [];

  constructor(
    private readonly nowMs: MonotonicClock,
    private readonly routes: Routes,
    readonly report: OncePerCause,
  ) {
    super();
  }

  /** Adds an observer; they are called in the order in which they were added. */
  observe(observer: RequestObserver): void {
    if (observer.started !== undefined) this.starting.push((state) => observer.started!(state));
    if (observer.ended !== undefined) this.ending.push((state) => observer.ended!(state));
    if (observer.endedElsewhere !== undefined) this.endingElsewhere.push((state) => observer.endedElsewhere!(state));
  }

  findRoute(state: RequestState): Route | null {
    if (state.request === null || this.platform === null) return null;
    try {
      return this.platform.findRoute(state, this.routes);
    } catch (error) {
      const cause = `the route of a request could not be read: ${reasonOf(error)}`;
      this.report.report(cause, `${cause}. The request is not affected.`);
      return null;
    }
  }

  nextId(): string {
    this.sequence += 1;
    return `${this.idPrefix}-${this.sequence.toString(36)}`;
  }

  get inFlight(): number {
    return this.open.size;
  }

  states(): RequestState[] {
    return this.open.toArray();
  }

  /** Called again for the same request it returns the same state. Never throws. */
  start(request: IncomingMessage, response: ServerResponse): RequestState {
    const known = (request as Marked)[STATE];
    if (known !== undefined && known.owner === this) return known;
    if (known !== undefined) return this.takeOver(known, request, response);
    const state = this.begun(new RequestState(request, response, this.nowMs(), this));
    (request as Marked)[STATE] = state;
    response.on('finish', this.onFinish);
    response.on('close', this.onClose);
    this.watch(state, request, response);
    return state;
  }

  /** Of several applications on one Express the innermost that it has reached, then that of its route, owns it. */
  private takeOver(from: RequestState, request: IncomingMessage, response: ServerResponse): RequestState {
    lifecycleOf(from).open.delete(from);
    const passed = (request as Marked)[PASSED] ?? ((request as Marked)[PASSED] = []);
    passed.push(from);
    const own = passed.find(({ owner }) => owner === this);
    const state = own ?? new RequestState(request, response, from.startedMs, this);
    (request as Marked)[STATE] = state;
    if (own !== undefined) this.open.add(own);
    else {
      this.begun(state);
      // Many may take it over.
      listenShared(response, 'finish', () => this.onFinish.call(response));
      listenShared(response, 'close', () => this.onClose.call(response));
      this.watch(state, request, response);
    }
    return state;
  }

  private watch(state: RequestState, request: IncomingMessage, response: ServerResponse): void {
    if ((response as Marked).req !== (request as Marked)) (response as Marked)[STATE] = state;
    // Such a response gets no `close` when the client leaves before its turn.
    if (response.socket === null && !isHttp2(response)) this.watchQueued(request.socket, state);
  }

  /** A listener for the server's `request`: what hears of the request after it, and what that awaits, is in the context store. */
  readonly arrive = (request: IncomingMessage, response: ServerResponse): void => {
    const state = this.start(request, response);
    if (this.contextEnabled) requestContext.enterWith(state);
  };

  /** Again where the context was lost, as behind a body that was read, and on servers without that event. */
  enter<T>(state: RequestState, next: () => T): T {
    return this.contextEnabled && requestContext.getStore() !== state ? requestContext.run(state, next) : next();
  }

  get contextEnabled(): boolean {
    return this.contextSinceMs !== Infinity;
  }

  /** From now on requests enter the context store, unless the application forbids it. */
  enableContext(): void {
    if (this.contextAllowed && !this.contextEnabled) this.contextSinceMs = this.nowMs();
  }

  /** Requests in flight that are not in the context store: their code cannot be told from nobody's. */
  outsideContext(): RequestState[] {
    return this.states().filter(({ request, startedMs }) => request !== null && startedMs < this.contextSinceMs);
  }

  /** Starts a scope that has no HTTP response of its own; {@link end} must be called for it. A part of a request is not counted as in flight. */
  begin(within: RequestState | null = null): RequestState {
    const state = new RequestState(null, null, this.nowMs(), this);
    state.within = within;
    return within === null ? this.begun(state) : state;
  }

  private begun(state: RequestState): RequestState {
    this.open.add(state);
    this.tell(this.starting, state);
    return state;
  }

  /** A route has handed a request on, unless it has answered before: no route is its own any more. */
  handOn(state: RequestState): void {
    if (state.response?.headersSent !== true) state.route = this.routes.unmatched.forMethod(state.request?.method);
  }

  /** Ends a request or scope. A second call changes nothing. Never throws. */
  end(state: RequestState, status: number, aborted: boolean): void {
    if (state.closed) return;
    this.close(state, status, aborted);
    state.route ??= this.routes.unmatched.forMethod(state.request?.method);
    this.open.delete(state);
    this.tell(this.ending, state);
    const passed = (state.request as Marked | null)?.[PASSED];
    if (passed !== undefined) for (const other of passed) lifecycleOf(other).endElsewhere(other, status, aborted);
    if (this.waiters.length > 0) this.wakeIfSettled();
  }

  private endElsewhere(state: RequestState, status: number, aborted: boolean): void {
    if (state.closed) return;
    this.close(state, status, aborted);
    this.tell(this.endingElsewhere, state);
  }

  private close(state: RequestState, status: number, aborted: boolean): void {
    state.closed = true;
    if (state.endedMs === 0) state.endedMs = this.nowMs();
    state.aborted = aborted;
    state.status = status;
  }

  private tell(observers: readonly ((state: RequestState) => void)[], state: RequestState): void {
    tellAll(observers, state, this.report, 'a request observer');
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

  private watchQueued(connection: Connection | null, state: RequestState): void {
    if (typeof connection?.once !== 'function') return;
    const queued = connection[QUEUED];
    if (queued !== undefined) {
      queued.add(state);
      return;
    }
    const states = new Set([state]);
    connection[QUEUED] = states;
    connection.once('close', () => {
      for (const left of states) lifecycleOf(left).end(left, statusOfAbort(left, left.response!), true);
    });
  }

  // One function for all responses, told apart by `this`: no closure a request.

  private readonly onFinish = ((lifecycle: RequestLifecycle) =>
    function (this: ServerResponse): void {
      const state = stateOf(this);
      if (state === null || state.owner !== lifecycle) return;
      // Of HTTP/2 it comes even when the client has cancelled the stream: `close` knows.
      if (isHttp2(this)) state.endedMs = lifecycle.nowMs();
      else lifecycle.end(state, this.statusCode, false);
    })(this);

  private readonly onClose = ((lifecycle: RequestLifecycle) =>
    function (this: ServerResponse): void {
      const state = stateOf(this);
      if (state === null || state.owner !== lifecycle) return;
      const queued = (state.request?.socket as Connection | null)?.[QUEUED];
      if (queued !== undefined) queued.delete(state);
      if (state.closed) return;
      const aborted = state.endedMs === 0 || wasReset(this);
      lifecycle.end(state, aborted ? statusOfAbort(state, this) : statusOf(this), aborted);
    })(this);
}

/** Not by its `stream`: an application may keep one of its own there. */
const isHttp2 = (response: ServerResponse): boolean => !(response instanceof ServerResponse);

/** Of HTTP/2 what was sent: an application may answer through the stream itself. */
function statusOf(response: ServerResponse): number {
  const { stream } = response as { stream?: { sentHeaders?: { ':status'?: number } } | null };
  return (isHttp2(response) ? stream?.sentHeaders?.[':status'] : undefined) ?? response.statusCode;
}

/** 499 when the client left before the head was sent. Asks Node itself: compression answers for a response that it holds back. */
function statusOfAbort({ request }: RequestState, response: ServerResponse): number {
  // Left in the middle of its body: Express's parsers answer that, into the closed connection.
  if (request?.complete === false && response.writableEnded) return 499;
  const sent: unknown =
    response instanceof ServerResponse
      ? Reflect.get(ServerResponse.prototype, 'headersSent', response)
      : (response as ServerResponse).headersSent;
  return sent === true ? statusOf(response) : 499;
}

/** HTTP/2 fires `finish` before `close` even when the client has cancelled the stream; the stream knows better. */
function wasReset(response: ServerResponse): boolean {
  const { stream } = response as { stream?: { aborted?: boolean; rstCode?: number } | null };
  return isHttp2(response) && (stream?.aborted === true || (stream?.rstCode ?? 0) !== 0);
}
