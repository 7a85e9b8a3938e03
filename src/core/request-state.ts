import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { attach, Attachable } from './attachment.js';
import type { Linked } from './linked-list.js';
import type { SizeNote, SpanRef, Unit } from './record.js';
import type { Route } from './route.js';

const SAFE_ID = /^[\w.:/+=-]{1,128}$/;
const REQUEST_ID_HEADER = 'x-request-id';
/** https://www.w3.org/TR/trace-context/#traceparent-header */
const TRACEPARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/;

/** The application a request belongs to. */
export interface RequestOwner extends Attachable {
  nextId(): string;
  /** The route of a request whose framework tells it only on demand; null while no route has matched. Never throws. */
  findRoute(state: RequestState): Route | null;
}

/** One request, from its first byte of work to the end of its response. The context store holds it. */
export class RequestState extends Attachable implements Linked<RequestState> {
  // Those of its application that are in flight.
  previous: RequestState | null = null;
  next: RequestState | null = null;
  /** Monotonic milliseconds; 0 until the request has ended. */
  endedMs = 0;
  closed = false;
  aborted = false;
  /** Final status; valid once closed. */
  status = 0;
  // What its record tells beside latency, filled in by whoever knows.
  blockedMs = 0;
  delayedMs = 0;
  variants: Record<string, string> | null = null;
  unit: Unit | null = null;
  note: SizeNote | null = null;
  /** The span that was active when the request started, when a sink knows a tracer (`PerfSinkHost.activeSpan`). */
  span: SpanRef | null = null;
  /** The HTTP request of whose work it is a part, as a resolver is; it is measured, and all that is done in it is that request's. */
  within: RequestState | null = null;
  /** The framework's request (`request.user` lives there); the raw one until the framework made its own. */
  frameworkRequest: unknown;
  private matched: Route | null = null;
  private identifier: string | null = null;

  constructor(
    /** The raw request; null for a message, socket event or resolver that is measured without HTTP. */
    readonly request: IncomingMessage | null,
    readonly response: ServerResponse | null,
    readonly startedMs: number,
    readonly owner: RequestOwner,
  ) {
    super();
    this.frameworkRequest = request;
  }

  /** An incoming `x-request-id` that is safe to log, else a generated one. Built when first asked for. */
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
    // Of a request in middleware the framework may still find another one.
    if (this.closed) this.matched = found;
    return found;
  }

  /** The route as far as it has been asked for already: a plain read, safe inside the event loop's interrupt. */
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
  // Not `request.headers`: its first reader pays for parsing them all.
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

/** Who is the current request. All applications of a process share it, so that `defer()` needs no injection. */
export const requestContext = new AsyncLocalStorage<RequestState>();

/**
 * Tells the request whose code calls, without the context store; null when it cannot. Costs some microseconds. `below`: the
 * outermost of our own functions in the stack; it and what it has called are skipped.
 */
export const CURRENT_REQUEST = attach<(below: Function) => RequestState | null>('application');

/** What the store holds: the request, or of a part of one the request that it is a part of. */
export function storedRequest(): RequestState | undefined {
  const stored = requestContext.getStore();
  return stored?.within ?? stored;
}

/** The request of `application` whose code calls this; null outside of one, or when it cannot be told. */
export function currentRequest(application: Attachable): RequestState | null {
  const stored = storedRequest();
  if (stored !== undefined && stored.owner === application) return stored;
  return CURRENT_REQUEST.get(application)?.(currentRequest) ?? null;
}

/** The same, but the part of a request that is measured by itself, where one calls. */
export function currentPart(application: Attachable): RequestState | null {
  const stored = requestContext.getStore();
  return stored?.within?.owner === application ? stored : currentRequest(application);
}
