import type { Type } from '@nestjs/common';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Linked } from '../core/linked-list.js';
import type { RequestTime, SizeNote, SpanRef, Unit, UpstreamUse } from '../core/record.js';
import type { Route } from './routes.js';

const SAFE_ID = /^[\w.:/+=-]{1,128}$/;
const REQUEST_ID_HEADER = 'x-request-id';
/** https://www.w3.org/TR/trace-context/#traceparent-header */
const TRACEPARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/;

/** Runs a decorated handler, and arms its deferred work. */
export interface RunsHandlers {
  runHandler(declaration: object, controller: unknown, state: RequestState, proceed: () => unknown): unknown;
}
/** Decides which variant of a gate a request gets. */
export interface DecidesGates {
  isOn(state: RequestState, gate: string): boolean;
  /** Resolves when {@link isOn} can decide; null when it can at once. Never rejects. */
  prepare(state: RequestState, gate: string): Promise<void> | null;
}
/** Finds the shared answers of a controller's handler, by the function that Nest calls. */
export interface FindsSharedAnswers {
  find(controller: Type, handler: Function): object;
}

/** The application of a request. Decorators find its features here, since they cannot inject them. */
export interface RequestOwner {
  /** For `@DeferWork`; null with `defer: false`. */
  deferrer: RunsHandlers | null;
  /** For `@Experiment`; null with `experiments: false`. */
  experiments: DecidesGates | null;
  /** For `@SharedResponse`; null with `compression: false`. */
  sharedAnswers: FindsSharedAnswers | null;
  /** For `@Measured`: a `Works` of src/work, which this folder may not import. */
  works?: object | null;
  nextId(): string;
  /** The route of a request whose framework gives it only on demand; null while no route has matched. Never throws. */
  findRoute(state: RequestState): Route | null;
}

/** The time of a request, by what it was spent on; final once the request has ended. */
export interface TimeSplit {
  readonly time: RequestTime;
  readonly upstream: readonly UpstreamUse[];
}

/** Notes of experiments on a request, beside its variants. */
export interface ExperimentNotes {
  /** Gates that the totals of variants leave out: the gate client did not draw their variant for this request. */
  readonly uncounted: string[];
  /** The time slice of the switchback experiment: a `SliceTally` of src/experiments. */
  slice: object | null;
}

/** One request, from its start to the end of its response. {@link requestContext} contains it. */
export class RequestState implements Linked<RequestState> {
  // Links of the list of requests in flight.
  previous: RequestState | null = null;
  next: RequestState | null = null;
  /** Monotonic milliseconds; 0 until the request has ended. */
  endedMs = 0;
  /** The request has ended, and its record is on its way: later changes are lost. */
  closed = false;
  aborted = false;
  /** The status of the head that was sent; once closed, the final one. 0: neither. */
  status = 0;
  /** When the head was sent, monotonic milliseconds; 0 until then. */
  firstByteMs = 0;

  // Event loop.
  blockedMs = 0;
  delayedMs = 0;
  /** The event loop's time that the request's stack samples represent, milliseconds. */
  sampledMs = 0;
  // Upstream: calls and busy time. Null with `upstream: false`.
  timing: TimeSplit | null = null;
  // Experiments: variants by gate, and the unit that they were drawn for.
  variants: Record<string, string> | null = null;
  experimentNotes: ExperimentNotes | null = null;
  unit: Unit | null = null;
  /** The result of the option `unit`: whom the request is for; undefined until it is read. */
  knownUnit: Unit | null | undefined = undefined;
  // Deferred work that the request has armed.
  work: { ended(state: RequestState): void; readonly committed: readonly string[] } | null = null;
  // Compression: `@NoCompression()` decorates the handler; the shared answer that the request
  // makes or gets; the conditional headers that are hidden from the application while it makes one.
  uncompressed = false;
  sharedAnswer: object | null = null;
  hiddenConditions: Record<string, string> | null = null;
  note: SizeNote | null = null;
  /** The span that was active when the request started, when a sink knows a tracer (`PerfSinkHost.activeSpan`). */
  span: SpanRef | null = null;
  /** Set on a scope alone (a resolver, a measured method): the HTTP request that it is a part of. */
  within: RequestState | null = null;
  /** The scope within it that took longest: it names the request where a GraphQL server answers. */
  longestWork: { readonly name: string; readonly durationMs: number } | null = null;
  /** The framework's request (`request.user` lives there); the raw one until the framework made its own. */
  frameworkRequest: unknown;
  private matched: Route | null = null;
  private identifier: string | null = null;

  constructor(
    /** The raw request; null for a message, socket event or resolver that is measured without HTTP. */
    readonly request: IncomingMessage | null,
    /** Null once it has been sent: objects that outlive the request (undici's) reference it by their async context. */
    public response: ServerResponse | null,
    readonly startedMs: number,
    /** Changes hands when a route of another application on the same server answers. */
    public owner: RequestOwner,
  ) {
    this.frameworkRequest = request;
  }

  /** An incoming `x-request-id` that is safe to log, else a generated one. Made at the first read. */
  get id(): string {
    if (this.identifier === null) {
      const given = soleHeader(this.request, REQUEST_ID_HEADER);
      this.identifier = given !== null && SAFE_ID.test(given) ? given : this.owner.nextId();
    }
    return this.identifier;
  }

  /** The matched route's pattern; null when there is none. */
  get pattern(): string | null {
    return this.route?.pattern ?? null;
  }

  /** W3C trace context: of the span that was active when the request started, else the client's. Null without either. */
  get traceparent(): string | null {
    if (this.span !== null) {
      const { traceId, spanId, traceFlags = 1 } = this.span;
      return `00-${traceId}-${spanId}-0${traceFlags & 1}`;
    }
    const given = soleHeader(this.request, 'traceparent');
    return given !== null && TRACEPARENT.test(given) ? given : null;
  }

  /** The matched route, or null while (or when) none has matched. */
  get route(): Route | null {
    if (this.matched !== null) return this.matched;
    const found = this.owner.findRoute(this);
    // A request in middleware may still match another route.
    if (this.closed) this.matched = found;
    return found;
  }

  /** The route if it is known already: a plain read, since the interrupt of a stack sample may call nothing else. */
  get knownRoute(): Route | null {
    return this.matched;
  }

  set route(route: Route | null) {
    this.matched = route;
  }
}

/** A header as the client sent it; null when there is none, or more than one. */
function soleHeader(request: IncomingMessage | null, wanted: string): string | null {
  if (request === null) return null;
  // `request.headers` would make Node build an object of all headers.
  const { rawHeaders } = request;
  let found: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length !== wanted.length || name.toLowerCase() !== wanted) continue;
    if (found !== null) return null;
    found = rawHeaders[i + 1]!;
  }
  return found;
}

/** The current request. All applications of a process share the store, so that `defer()` needs no injection. */
export const requestContext = new AsyncLocalStorage<RequestState>();

/** The HTTP request of the store; a resolver's scope counts as the request that it is a part of. */
export function storedRequest(): RequestState | undefined {
  const stored = requestContext.getStore();
  return stored?.within ?? stored;
}

/** The stored request, where it is the one that the framework passes: a callback that has lost its context may run in another's. */
export function confirmRequest(frameworkRequest: unknown): RequestState | null {
  const stored = storedRequest();
  return stored !== undefined && stored.frameworkRequest === frameworkRequest ? stored : null;
}

/** The current request of `application`; null outside of one. */
export function currentRequest(application: RequestOwner): RequestState | null {
  const stored = storedRequest();
  return stored?.owner === application ? stored : null;
}

/** The innermost scope of `application`: a resolver's own where one runs, else the request. */
export function currentScope(application: RequestOwner): RequestState | null {
  const stored = requestContext.getStore();
  return stored?.owner === application ? stored : null;
}
