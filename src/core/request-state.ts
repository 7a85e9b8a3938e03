import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SizeNote, SpanRef, Unit } from './record.js';
import type { Route } from './route.js';

const SAFE_ID = /^[\w.:/+=-]{1,128}$/;
const REQUEST_ID_HEADER = 'x-request-id';

/** Decides gates for requests; the experiments feature of an application. */
export interface GateCheck {
  /** The variant of a request, decided at the first question and kept. Never throws. */
  isOn(state: RequestState, gate: string): boolean;
}

/** What a request's state needs of the application it runs in. */
export interface RequestOwner {
  /** Null when the application has no experiments. */
  readonly gates: GateCheck | null;
  /** A new request id. */
  nextId(): string;
  /** Where `defer()` arms work: set by the defer feature, null while it is off. */
  readonly deferrer: unknown;
  /** The route of a request whose framework tells it only on demand; null while no route has matched. */
  findRoute(state: RequestState): Route | null;
}

/** Something that is over when it has settled. */
export interface Settling {
  readonly settled: boolean;
}

/** Hears of a request's end. */
export interface EndListener {
  ended(state: RequestState): void;
}

/**
 * One request from its first byte of work to the close of its response: the one object the request path allocates.
 * It is also what the context store holds, so features keep what they know of the request here, one field each.
 */
export class RequestState {
  /**
   * Before it on the same connection, still unanswered when this one came: the client has not waited (pipelining). It may have
   * ended since, and so has every one before it.
   */
  ahead: RequestState | null = null;
  /** Monotonic milliseconds; 0 until the response has ended. */
  endedMs = 0;
  /** `finish` was seen: the response was handed to the operating system. Not kept for HTTP/1. */
  finished = false;
  closed = false;
  aborted = false;
  /** Final status; valid once closed. */
  status = 0;
  /** Milliseconds of event-loop blocks that this request is proven to have caused. */
  blockedMs = 0;
  /** Milliseconds of blocks by others while it was in flight. */
  delayedMs = 0;
  variants: Record<string, string> | null = null;
  unit: Unit | null = null;
  note: SizeNote | null = null;
  /** The span that was active when the request started, when a sink knows a tracer (`PerfSinkHost.activeSpan`). */
  span: SpanRef | null = null;
  /** What the experiments feature notes beside the variants; null until there is something. */
  experiments: unknown = null;
  /** Work armed by the defer feature, last to hear of the end; null until there is some. */
  deferred: EndListener | null = null;
  /** The compression feature's: the shared answer that this request makes or gets; null for an answer of its own. */
  shared: unknown = null;
  /** The event loop feature's: the call of the request's route function, where nothing waits for it by name from the start. */
  routeCall: Settling | null = null;
  /** The framework's request (`request.user` lives there); the raw one until the framework made its own. */
  frameworkRequest: unknown;
  private matched: Route | null = null;
  private identifier: string | null = null;

  constructor(
    /** The raw request; null for a message, socket event or resolver that is measured without HTTP. */
    readonly request: IncomingMessage | null,
    readonly response: ServerResponse | null,
    /** Monotonic milliseconds. */
    readonly startedMs: number,
    readonly owner: RequestOwner,
  ) {
    this.frameworkRequest = request;
  }

  /** An incoming `x-request-id` that is safe to log, else a generated one. Built when first asked for. */
  get id(): string {
    if (this.identifier === null) {
      const given = this.request === null ? null : incomingId(this.request);
      this.identifier = given !== null && SAFE_ID.test(given) ? given : this.owner.nextId();
    }
    return this.identifier;
  }

  /** The matched route, or null while (or when) none has matched. */
  get route(): Route | null {
    return (this.matched ??= this.owner.findRoute(this));
  }

  /** The route as far as it has been asked for already: a plain read, safe inside the event-loop probe's interrupt. */
  get knownRoute(): Route | null {
    return this.matched;
  }

  set route(route: Route | null) {
    this.matched = route;
  }
}

/** The `x-request-id` as the client sent it; null when there is none, or more than one. */
function incomingId({ rawHeaders }: IncomingMessage): string | null {
  // Not `request.headers`: its first reader pays for parsing them all into an object.
  let found: string | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length !== REQUEST_ID_HEADER.length || name.toLowerCase() !== REQUEST_ID_HEADER) continue;
    if (found !== null) return null;
    found = rawHeaders[i + 1]!;
  }
  return found;
}
