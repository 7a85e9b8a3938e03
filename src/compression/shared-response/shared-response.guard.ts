import {
  Catch,
  type ArgumentsHost,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
} from '@nestjs/common';
import type { IncomingMessage } from 'node:http';
import type { RequestState } from '../../core/request-state.js';
import { isHttp } from '../../http/handler.interceptor.js';
import { lifecycleOf, stateOf } from '../../http/lifecycle.js';
import { compressionOf, SHARED_ANSWER } from '../route-compression.js';
import type { Headers, KeptResponse } from './shared-flight.js';
import type { Admission } from './shared-route.js';

/** What the guard rejects with instead of running the handler: the answer is there already. Not an error, so it has no stack. */
export class SharedResponseFound {
  /** For whoever sees it pass, a tracer for example. */
  readonly message = 'A shared response was found; the handler need not run.';

  /** `kept` null: nobody waits for an answer any more. */
  constructor(readonly kept: KeptResponse | null) {}
}

const READY = Promise.resolve();

/**
 * Rejects when Nest waits for it. To throw is dear on the way of nearly every request: V8 looks up where it happens, and a
 * promise that is rejected before anybody waits for it is an unhandled one to Node until somebody does.
 */
function rejectLater(reason: unknown): Promise<never> {
  return new Promise((_resolve, reject) => void READY.then(() => reject(reason)));
}

interface HttpRequest extends IncomingMessage {
  originalUrl?: string;
}
interface HttpResponse {
  getHeaders(): Headers;
}

/**
 * The last guard of a `@SharedResponse()` handler: finds the answer, waits for the one being made, or lets the request make it.
 * A guard, because interceptors run before route-level ones could stop them and would transform the answer again for every
 * request. It stands in the class's metadata, which applications share, so it holds nothing: the route knows its own.
 */
export class SharedResponseGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    if (!isHttp(context)) return true;
    // Not `switchToHttp()`: it makes four functions for each caller.
    const request = context.getArgByIndex<HttpRequest>(0);
    const state = stateOf(request);
    const shared = compressionOf(state)?.shared ?? null;
    if (state === null || shared === null) return true;
    const admission = shared.admit({
      method: request.method ?? 'GET',
      url: request.originalUrl ?? request.url ?? '',
      authorized: request.headers.authorization !== undefined,
      request,
      headers: () => context.getArgByIndex<HttpResponse>(1).getHeaders(),
      gone: () => hasGone(state.response),
    });
    if (admission instanceof Promise) return admission.then((admitted) => enter(admitted, state, request));
    return enter(admission, state, request);
  }
}

/** Lets the request run the handler, or rejects with the answer that is there. */
function enter(admission: Admission, state: RequestState, request: HttpRequest): true | Promise<never> {
  if (admission.kind === 'alone') return true;
  if (admission.kind === 'gone') return rejectLater(new SharedResponseFound(null));
  if (admission.kind === 'kept') return rejectLater(new SharedResponseFound(admission.kept));
  const { response } = state;
  const { flight } = admission;
  SHARED_ANSWER.set(state, flight);
  // Express would drop the body of an answer that this client has already, and with it the answer of everybody who
  // waits. The client still gets its 304, from the body.
  if (!('raw' in request)) Object.defineProperty(request, 'fresh', { value: false, configurable: true });
  if (response === null || response.destroyed) flight.close(false);
  else response.once('close', () => flight.close(response.headersSent));
  return true;
}

/** A response of HTTP/2 tells it by its stream. */
function hasGone(response: { destroyed?: boolean; stream?: { destroyed?: boolean } | null } | null): boolean {
  return response?.destroyed === true || response?.stream?.destroyed === true;
}

/** Sends the answer that the guard has found. The hook that sees every body recognises it by the request's state. */
@Catch(SharedResponseFound)
export class SharedResponseFilter implements ExceptionFilter {
  catch({ kept }: SharedResponseFound, host: ArgumentsHost): void {
    const state = stateOf(host.getArgByIndex(0));
    // The guard found the answer through it.
    if (state === null || kept === null) return;
    SHARED_ANSWER.set(state, kept);
    const answer = { status: 200, headers: Object.fromEntries(kept.headers), body: kept.entry.source };
    lifecycleOf(state).platform?.answer(host.getArgByIndex(1), answer);
  }
}
