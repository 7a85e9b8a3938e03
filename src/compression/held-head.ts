import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders } from 'node:http';
import { ServerResponse, STATUS_CODES } from 'node:http';
import type { CompressionStats } from '../core/snapshot.js';
import type { RequestState } from '../request/request-state.js';
import { noteHead } from '../request/tracker.js';
import { hasGone } from './has-gone.js';
import { mayEncode, present, type FieldValue, type ResponseHead } from './rules/policy.js';
import { KeptResponse, type SharedFlight } from './shared-response/shared-flight.js';

interface AnyResponse extends ServerResponse {
  /** Express's application; undefined on a plain Node server. */
  readonly app?: { get?(setting: string): unknown };
}

/** `writeHead`'s headers: an object, or a list of names and values. */
type GivenHeaders = OutgoingHttpHeaders | OutgoingHttpHeader[] | null | undefined;

/** Status and headers that the application has set, and Node has not sent. */
export class HeldHead implements ResponseHead {
  /** As the application answered: a change while the body is being encoded comes too late. */
  status: number;
  readonly isEncodable: boolean;
  private readonly prototype: ServerResponse;

  constructor(
    private readonly state: RequestState,
    readonly request: IncomingMessage,
    private readonly response: AnyResponse,
    readonly counters: Omit<CompressionStats, 'cacheBytes'>,
    /** The client's own `If-None-Match`, where the application reads a translated one. */
    private readonly ifNoneMatch: string | undefined,
  ) {
    this.status = response.statusCode;
    this.prototype = Object.getPrototypeOf(response) as ServerResponse;
    // The handler of a shared answer has ended: the conditional headers that were hidden from it come back.
    if (state.hiddenConditions !== null) Object.assign(request.headers, state.hiddenConditions);
    this.isEncodable = !this.isUncompressed && mayEncode(this);
  }

  get method(): string {
    return this.request.method ?? 'GET';
  }

  get gone(): boolean {
    return hasGone(this.response);
  }

  /** A flight, for whose answer others wait; a kept answer, which this response is; or null for a response of its own. */
  get shared(): SharedFlight | KeptResponse | null {
    return this.state.sharedAnswer as SharedFlight | KeptResponse | null;
  }

  get isUncompressed(): boolean {
    return this.state.uncompressed;
  }

  /** The response can go out as it is, whatever its body. */
  get passes(): boolean {
    return this.shared === null && this.status !== 304 && !this.isEncodable;
  }

  /** A kept answer's body replaces the one of this response. */
  get isKept(): boolean {
    return this.shared instanceof KeptResponse && this.status === 200;
  }

  /** False where the application has switched Express's tags off. */
  get mayAddTag(): boolean {
    return this.response.app?.get?.('etag') !== false;
  }

  /** The declared length of the body, bytes; null without one. */
  get length(): number | null {
    const given = this.header('content-length');
    return given === undefined ? null : Number(given);
  }

  header(name: string): FieldValue {
    return present(this.response.getHeader(name));
  }

  headers(): Readonly<Record<string, FieldValue>> {
    return this.response.getHeaders();
  }

  requestHeader(name: 'if-none-match' | 'cache-control'): string | undefined {
    if (name === 'if-none-match' && this.ifNoneMatch !== undefined) return this.ifNoneMatch;
    return this.request.headers[name];
  }

  /** While the head is held, `headersSent` is true for the application, and changes of the head throw. */
  showAnswered(): void {
    Object.setPrototypeOf(this.response, extendAnswered(this.prototype));
  }

  set(name: string, value: Exclude<FieldValue, undefined>): void {
    this.prototype.setHeader.call(this.response, name, value);
  }

  remove(name: string): void {
    this.prototype.removeHeader.call(this.response, name);
  }

  setStatus(status: number): void {
    this.status = status;
    // Node sets the reason phrase of the new status.
    if (this.response instanceof ServerResponse) this.response.statusMessage = '';
  }
}

interface GivenHead {
  readonly status: number;
  readonly reason: string | undefined;
  readonly headers: GivenHeaders;
}

/** Reads what `writeHead` was given, as Node does. */
export function readGivenHead([status, second, third]: readonly unknown[]): GivenHead {
  const reason = typeof second === 'string' ? second : undefined;
  const headers = (reason === undefined ? (third ?? second) : third) as GivenHeaders;
  return { status: Number(status) | 0, reason, headers };
}

/** The declared length when headers are a plain object, the common form; else NaN. */
export function readLength({ headers }: GivenHead): number {
  if (headers === null || headers === undefined || Array.isArray(headers)) return Number.NaN;
  return Number(headers['content-length']);
}

/** Characters that Node refuses in a reason phrase. */
const REFUSED = /[^\t\x20-\x7e\x80-\xff]/;

/**
 * Sets a head on the response, as `writeHead` does. False, with nothing set, for a list of headers, whose response goes out as it is,
 * and for a status or reason that Node refuses. @throws Node's own error for a header that Node refuses
 */
export function applyHead(response: ServerResponse, { status, reason, headers }: GivenHead): boolean {
  if (Array.isArray(headers) || !(status >= 100 && status <= 999)) return false;
  // HTTP/2 has no reason phrase, and Node warns of one that is read.
  const phrase =
    reason ?? (response instanceof ServerResponse ? response.statusMessage || STATUS_CODES[status] : '') ?? 'unknown';
  if (REFUSED.test(phrase)) return false;
  if (response instanceof ServerResponse) response.statusMessage = phrase;
  response.statusCode = status;
  const isFirst = response.getHeaderNames().length === 0;
  const names = Object.keys(headers ?? {});
  try {
    for (const name of names) response.setHeader(name, headers![name]!);
  } catch (error) {
    // Node keeps what it has set so far where a header was set before; else it writes a head at once.
    if (isFirst) for (const name of names) response.removeHeader(name);
    throw error;
  }
  return true;
}

export type Given = [chunk?: unknown, encoding?: unknown, callback?: unknown];

/** Every way of answering calls one of these functions of a response. */
export interface Sending {
  writeHead: (...head: unknown[]) => ServerResponse;
  write: (...chunk: Given) => boolean;
  end: (...chunk: Given) => ServerResponse;
  flushHeaders: () => void;
}

/** {@link HeldResponse}, as the functions and properties of its response read it. */
export interface Hold {
  writeHead(given: readonly unknown[]): ServerResponse;
  write(given: Given): boolean;
  end(given: Given): ServerResponse;
  flushHeaders(): void;
  /** The application has given a head that is not sent yet, or a stream's encoder has not ended. */
  readonly holdsHead: boolean;
  /** The application has ended a response that is not sent yet. */
  readonly hasEnded: boolean;
  readonly needsDrain: boolean;
}
const HOLD: unique symbol = Symbol('perf:hold');
interface Held extends ServerResponse {
  [HOLD]?: Hold;
}
const heldBy = (response: ServerResponse): Hold => (response as Held)[HOLD]!;
/** A response references its `HeldResponse`, since the request's state outlives both. */
export function holdResponse(response: ServerResponse, hold: Hold): void {
  (response as Held)[HOLD] = hold;
}

/** Call the response's `HeldResponse`. All responses share these functions: closures for each would cost more. */
const STAND_INS: Sending = {
  writeHead(this: ServerResponse, ...head) {
    return heldBy(this).writeHead(head);
  },
  write(this: ServerResponse, chunk, encoding, callback) {
    return heldBy(this).write([chunk, encoding, callback]);
  },
  end(this: ServerResponse, chunk, encoding, callback) {
    return heldBy(this).end([chunk, encoding, callback]);
  },
  flushHeaders(this: ServerResponse) {
    heldBy(this).flushHeaders();
  },
};

/** Returns the functions that others have set on the response itself before; null: none, but for this library's own `writeHead`. */
export function replaceSending(response: ServerResponse): Partial<Sending> | null {
  const given = response as unknown as Sending;
  const usual = Object.getPrototypeOf(response) as Sending;
  const isUsual = given.writeHead === noteHead && given.write === usual.write && given.end === usual.end;
  const own = isUsual && given.flushHeaders === usual.flushHeaders ? null : readOwn(given);
  // One by one: a loop over the names takes several times as long.
  given.writeHead = STAND_INS.writeHead;
  given.write = STAND_INS.write;
  given.end = STAND_INS.end;
  given.flushHeaders = STAND_INS.flushHeaders;
  return own;
}

/** Whether a body still passes its `HeldResponse`: an application may delete functions that it takes for its own. */
export const isHeld = (response: ServerResponse): boolean =>
  Object.hasOwn(response, 'write') && Object.hasOwn(response, 'end');

const readOwn = (given: Sending): Partial<Sending> =>
  Object.fromEntries(
    (Object.keys(STAND_INS) as (keyof Sending)[])
      .filter((name) => Object.hasOwn(given, name))
      .map((name) => [name, given[name]]),
  );

/** Node's own error for a header that comes too late. */
export function refuseHead(): never {
  const error = new Error('Cannot set headers after they are sent to the client');
  throw Object.assign(error, { code: 'ERR_HTTP_HEADERS_SENT' });
}

/** Functions that change a head. */
const CHANGES = ['setHeader', 'setHeaders', 'appendHeader', 'removeHeader'] as const;

const answeredPrototypes = new WeakMap<object, object>();

/**
 * A prototype over the response's own that shows a held head as sent. It stays after the head is sent: a second change of prototype
 * costs Node's functions their inline caches. Own properties would make each response a slow object.
 */
export function extendAnswered(prototype: object): object {
  const known = answeredPrototypes.get(prototype);
  if (known !== undefined) return known;
  const answered = Object.create(prototype) as object;
  // `finished` stays false: a closing server ends the connections of finished responses.
  const show = (name: string, read: (hold: Hold) => boolean): object =>
    Object.defineProperty(answered, name, {
      get(this: ServerResponse): unknown {
        const hold = heldBy(this);
        return hold.holdsHead ? read(hold) : Reflect.get(prototype, name, this);
      },
    });
  show('headersSent', () => true);
  show('writableEnded', ({ hasEnded }) => hasEnded);
  show('writableNeedDrain', ({ needsDrain }) => needsDrain);
  for (const name of CHANGES) {
    const change = function (this: ServerResponse, ...given: unknown[]): unknown {
      return heldBy(this).holdsHead
        ? refuseHead()
        : Reflect.apply(Reflect.get(prototype, name) as () => unknown, this, given);
    };
    Object.defineProperty(answered, name, { value: change, writable: true });
  }
  answeredPrototypes.set(prototype, answered);
  return answered;
}

type Callback = (error?: Error | null) => void;
export const findCallback = (given: readonly unknown[]): Callback | undefined =>
  given.find((each) => typeof each === 'function') as Callback | undefined;

/** Fails a write after the end as Node does; but an error without a listener does not end the process. */
export function refuseChunk(response: ServerResponse, given: readonly unknown[]): false {
  const error = Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' });
  process.nextTick(() => {
    findCallback(given)?.(error);
    if (response.listenerCount('error') > 0) response.emit('error', error);
  });
  return false;
}
