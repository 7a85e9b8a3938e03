import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { MonotonicClock } from '../core/clock.js';
import { LinkedList } from '../core/linked-list.js';
import { describeReason } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import type { SpanRef } from '../core/record.js';
import { requestContext, RequestState, type RequestOwner } from './request-state.js';
import type { Route, Routes } from './routes.js';
import type { Platform } from './platform.js';

/** On a request, or on a response that does not know its request: the state. */
const STATE: unique symbol = Symbol('perf:state');
/** On a connection: its requests that arrived while another one was still being answered (pipelining). */
const QUEUED: unique symbol = Symbol('perf:queued');

interface Connection extends Socket {
  [QUEUED]?: Set<RequestState>;
}
interface Marked {
  [STATE]?: RequestState;
  /** The request of a response. */
  req?: Marked;
}

/** The state of Node's request or response; null when it is not observed. */
export function findState(node: IncomingMessage | ServerResponse): RequestState | null {
  const given = node as Marked;
  return given[STATE] ?? given.req?.[STATE] ?? null;
}

export const findTracker = (state: RequestState): RequestTracker => state.owner as RequestTracker;

/** One step of the pipeline. Runs on the request path. */
export type RequestStep = (state: RequestState) => void;

/** The steps at the start of a request, and at its end, when status, outcome and duration are final. */
export interface Pipeline {
  readonly started: readonly RequestStep[];
  readonly ended: readonly RequestStep[];
  /** At the start of a scope within a request. */
  readonly scoped?: readonly RequestStep[];
}

/** Start and end of every request of one application, each exactly once, and those in flight. */
export class RequestTracker implements RequestOwner {
  platform: Platform | null = null;
  deferrer: RequestOwner['deferrer'] = null;
  experiments: RequestOwner['experiments'] = null;
  sharedAnswers: RequestOwner['sharedAnswers'] = null;
  works: object | null = null;
  /** The active span, from a sink that knows a tracer; null without one. */
  readSpan: (() => SpanRef | null) | null = null;
  /** Set before the first request: pipeline.ts has the list. */
  pipeline: Pipeline = { started: [], ended: [] };
  private readonly open = new LinkedList<RequestState>();
  private sequence = 0;
  private readonly idPrefix = Math.random().toString(36).slice(2, 10);
  private waiters: (() => void)[] = [];

  constructor(
    readonly nowMs: MonotonicClock,
    private readonly routes: Routes,
    readonly report: OncePerCause,
  ) {}

  findRoute(state: RequestState): Route | null {
    if (state.request === null || this.platform === null) return null;
    try {
      return this.platform.findRoute(state);
    } catch (error) {
      const cause = `the route of a request could not be read: ${describeReason(error)}`;
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

  /** Returns the state of a request; makes it at the first call. Never throws. */
  start(request: IncomingMessage, response: ServerResponse): RequestState {
    const known = (request as Marked)[STATE];
    if (known !== undefined) return known;
    // Every way of answering passes `writeHead`. One that another tool has put there stays: then the first byte is unknown.
    const usual = Object.getPrototypeOf(response) as ServerResponse;
    if (response.writeHead === usual.writeHead) response.writeHead = noteHead;
    const state = this.begun(new RequestState(request, response, this.nowMs(), this));
    (request as Marked)[STATE] = state;
    response.on('finish', onFinish);
    response.on('close', onClose);
    if ((response as Marked).req !== (request as Marked)) (response as Marked)[STATE] = state;
    const stream = readStream(response);
    // Over HTTP/2 the response to a HEAD that nobody ends emits no `close`: its stream does.
    if (stream !== null) stream.once?.('close', onClose.bind(response));
    // A pipelined response gets the socket when its turn comes. If the client leaves before, it emits no `close`.
    else if (response.socket === null) watchQueued(request.socket, state);
    return state;
  }

  /** The listener of the server's `request` event: later listeners and what they await run in the request's async context. */
  readonly arrive = (request: IncomingMessage, response: ServerResponse): void => {
    requestContext.enterWith(this.start(request, response));
  };

  /** Runs `next` in the request's async context, for servers without that event. */
  enter<T>(state: RequestState, next: () => T): T {
    return requestContext.getStore() === state ? next() : requestContext.run(state, next);
  }

  /** Notes the route that runs. Where two applications share a server, the request now belongs to the one that serves it. */
  triggered(state: RequestState, route: Route): void {
    if (state.closed) return;
    if (state.owner !== this) {
      findTracker(state).open.delete(state);
      state.owner = this;
      this.open.add(state);
    }
    state.route = route.forMethod(state.request?.method);
  }

  /** Starts a scope without a response, such as a job; {@link end} must follow. `within`: it is a part of this request, and not in flight. */
  begin(within: RequestState | null = null): RequestState {
    const state = new RequestState(null, null, this.nowMs(), this);
    state.within = within;
    if (within === null) return this.begun(state);
    this.run(this.pipeline.scoped, state);
    return state;
  }

  private begun(state: RequestState): RequestState {
    this.open.add(state);
    this.run(this.pipeline.started, state);
    return state;
  }

  /** Ends a request or scope. A second call changes nothing. Never throws. */
  end(state: RequestState, status: number, aborted: boolean): void {
    if (state.closed) return;
    state.closed = true;
    if (state.endedMs === 0) state.endedMs = this.nowMs();
    state.aborted = aborted;
    state.status = status;
    state.route ??= this.routes.unmatched.forMethod(state.request?.method);
    this.open.delete(state);
    this.run(this.pipeline.ended, state);
    if (!aborted) state.response = null;
    if (this.waiters.length > 0) this.wakeIfSettled();
  }

  private run(steps: readonly RequestStep[] | undefined, state: RequestState): void {
    if (steps === undefined) return;
    for (let i = 0; i < steps.length; i++) {
      try {
        steps[i]!(state);
      } catch (error) {
        const cause = `a step of the request pipeline failed: ${describeReason(error)}`;
        this.report.report(cause, `${cause}. Requests are not affected.`);
      }
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
}

// One function for all responses: a closure for each request would cost more than the listener.

/** Calls the function of the response's prototype, Node's own or Express's, and notes when the head was sent. */
export function noteHead(this: ServerResponse, ...head: unknown[]): ServerResponse {
  const state = findState(this);
  // `this` may be an object that the application derives from the response.
  let prototype = Object.getPrototypeOf(state?.response ?? this) as WritesHead;
  while (prototype.writeHead === noteHead) prototype = Object.getPrototypeOf(prototype) as WritesHead;
  const returned = prototype.writeHead.apply(this, head);
  // Reached only when the head is valid: Node throws for one that is not.
  noteFirstByte(state);
  return returned;
}

interface WritesHead {
  writeHead(this: ServerResponse, ...head: unknown[]): ServerResponse;
}

function noteFirstByte(state: RequestState | null): void {
  if (state === null || state.firstByteMs !== 0 || state.closed) return;
  state.firstByteMs = findTracker(state).nowMs();
  // The status now: an exception filter may set another one when the head is gone.
  state.status = state.response!.statusCode;
}

function onFinish(this: ServerResponse): void {
  const state = findState(this);
  if (state === null) return;
  // Over HTTP/2 `close` follows, and knows whether the client has cancelled the stream.
  if (isHttp2(this)) state.endedMs = findTracker(state).nowMs();
  else findTracker(state).end(state, readSentStatus(state, this), false);
}

function onClose(this: ServerResponse): void {
  const state = findState(this);
  if (state === null) return;
  const stream = readStream(this);
  if (stream === null) (state.request?.socket as Connection | null)?.[QUEUED]?.delete(state);
  if (state.closed) return;
  // Over HTTP/2 an answer to HEAD may be a head that nobody ends, and `finish` also comes for a stream that was cancelled.
  const isSent = state.endedMs !== 0 || stream?.headersSent === true;
  const wasReset = stream !== null && (stream.aborted === true || (stream.rstCode ?? 0) !== 0);
  if (!isSent || wasReset) endAborted(state, this);
  else findTracker(state).end(state, readSentStatus(state, this), false);
}

function watchQueued(connection: Connection | null, state: RequestState): void {
  if (typeof connection?.once !== 'function') return;
  const queued = connection[QUEUED];
  if (queued !== undefined) return void queued.add(state);
  const states = new Set([state]);
  connection[QUEUED] = states;
  connection.once('close', () => {
    for (const left of states) if (left.response !== null) endAborted(left, left.response);
  });
}

/** With the status that was sent, or 499 when the client left before the head was sent. */
function endAborted(state: RequestState, response: ServerResponse): void {
  const sent = isHeadSent(state, response);
  if (!sent) state.firstByteMs = 0;
  findTracker(state).end(state, sent ? readSentStatus(state, response) : 499, true);
}

/** The property `stream` is no sign: an application may keep one of its own there. */
const isHttp2 = (response: ServerResponse): boolean => !(response instanceof ServerResponse);

interface Http2Stream {
  once?(event: 'close', listener: () => void): unknown;
  readonly headersSent?: boolean;
  readonly aborted?: boolean;
  readonly rstCode?: number;
  readonly sentHeaders?: { readonly ':status'?: number };
}

const readStream = (response: ServerResponse): Http2Stream | null =>
  isHttp2(response) ? ((response as { stream?: Http2Stream | null }).stream ?? null) : null;

/** The status that was sent: over HTTP/2 an application may answer through the stream itself. */
const readSentStatus = ({ status }: RequestState, response: ServerResponse): number =>
  readStream(response)?.sentHeaders?.[':status'] ?? (status === 0 ? response.statusCode : status);

/** Reads Node's own flag: compression overrides `headersSent` of a response that it delays. */
function isHeadSent({ request }: RequestState, response: ServerResponse): boolean {
  // The client left while it sent its body. Express's parsers then answer 400 into the closed connection.
  if (request?.complete === false && response.writableEnded) return false;
  const sent: unknown = isHttp2(response)
    ? response.headersSent
    : Reflect.get(ServerResponse.prototype, 'headersSent', response);
  return sent === true;
}
