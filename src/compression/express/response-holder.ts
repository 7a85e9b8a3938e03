import { type IncomingMessage, ServerResponse } from 'node:http';
import type { RequestState } from '../../request/request-state.js';
import { noteHead, stateOf } from '../../request/tracker.js';
import type { RequestTracker } from '../../request/tracker.js';
import type { CompressionEngine } from '../engine.js';
import { HeldResponse, type Sending } from './held-response.js';

/** This room alone sets it. */
const heldOf = (state: RequestState): HeldResponse | null => state.heldResponse as HeldResponse | null;
const NAMES = ['writeHead', 'write', 'end'] as const;
type Send = (...given: unknown[]) => unknown;
interface ExpressSending extends Sending {
  send: (body: unknown) => unknown;
}

/** The part of Express 5 that is used. */
export interface ExpressApplication {
  /** The prototype that the application gives to each of its responses. */
  readonly response: object;
  use(middleware: (request: IncomingMessage, response: ServerResponse, next: () => void) => void): unknown;
}

/**
 * Installs compression on an Express application, before its routes exist. Called from `configure()`, the middleware stands behind
 * those of main.ts: of two compressors the inner one encodes, and the outer one sees that it is done.
 */
export function compressOnExpress(
  express: ExpressApplication,
  engine: CompressionEngine,
  requests: RequestTracker,
): void {
  // Once for all responses. Two applications may serve one Express: each has functions there, for those that it holds.
  const original = sendingBefore(express.response as ExpressSending);
  put(express.response, (name, response, given) => {
    const state = stateOf(response);
    const held = state === null ? null : heldOf(state);
    return held?.original === original ? call(held, name, given) : (original[name] as Send).apply(response, given);
  });
  Object.assign(express.response, {
    send(this: ServerResponse, body: unknown): unknown {
      const state = stateOf(this);
      if (state !== null) heldOf(state)?.sends(body);
      return original.send.call(this, body);
    },
  });
  express.use((request, response, next) => {
    // Of this application, also where another one on the same Express has seen the request since.
    const state = requests.start(request, response);
    // What an earlier middleware has replaced stays behind functions of this response's own.
    const isReplaced = NAMES.some((name) => Object.hasOwn(response, name) && response[name] !== noteHead);
    const { writeHead, write, end } = response as unknown as Sending;
    const before = isReplaced ? { writeHead, write, end } : original;
    const held = new HeldResponse(request, response, engine, before);
    if (isReplaced) put(response, (name, _response, given) => call(held, name, given));
    state.heldResponse = held;
    next();
  });
}

/** On an adapter that is no Express: in front of a response of HTTP/1, from its request's start on. */
export function holdOnNode(engine: CompressionEngine, { request, response }: RequestState): void {
  if (request === null || !(response instanceof ServerResponse)) return;
  const { writeHead, write, end } = response as unknown as Sending;
  const held = new HeldResponse(request, response, engine, { writeHead, write, end });
  put(response, (name, _response, given) => call(held, name, given));
}

const call = (held: HeldResponse, name: keyof Sending, given: unknown[]): unknown =>
  (held[name] as Send).apply(held, given);

function put(on: object, send: (name: keyof Sending, response: ServerResponse, given: unknown[]) => unknown): void {
  for (const name of NAMES) {
    const standIn = function (this: ServerResponse, ...given: unknown[]): unknown {
      return send(name, this, given);
    };
    Object.assign(on, { [name]: standIn });
  }
}

/** What is there now; of Node's own always the newest, since an agent may patch it later. */
function sendingBefore(prototype: ExpressSending): ExpressSending {
  const inherited = Object.getPrototypeOf(prototype) as ExpressSending;
  const before = {} as ExpressSending;
  for (const name of [...NAMES, 'send'] as const) {
    const own = Object.hasOwn(prototype, name) ? prototype[name] : undefined;
    Object.defineProperty(before, name, { get: () => own ?? inherited[name] });
  }
  return before;
}
