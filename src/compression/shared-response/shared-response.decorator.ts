import {
  applyDecorators,
  Catch,
  SetMetadata,
  UseFilters,
  UseGuards,
  type ArgumentsHost,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
} from '@nestjs/common';
import type { IncomingMessage } from 'node:http';
import { MAX_TIMER_MS, monotonicMs } from '../../core/clock.js';
import { boolean, number, object, optional, optionalNumber, value } from '../../core/option.js';
import { decoratedPlace } from '../../request/decorated-method.js';
import { PerfError } from '../../core/perf.error.js';
import { storedRequest, type RequestState } from '../../request/request-state.js';
import { trackerOf, stateOf } from '../../request/tracker.js';
import { hideCondition } from '../fastify/hidden-condition.js';
import type { FastifyRequest } from '../fastify/response-view.js';
import { isUncompressed } from '../uncompressed.js';
import { signOf } from './known-caller.js';
import type { Headers, KeptResponse, SharedFlight } from './shared-flight.js';
import type { SharedResponseOptions, SharedRoute } from './shared-route.js';

export const SHARED_RESPONSE_METADATA = 'perf:shared-response';

/** The decorator's options on a handler; undefined without the decorator. */
export const sharedOptionsOf = (handler: object): SharedResponseOptions | undefined =>
  Reflect.getMetadata(SHARED_RESPONSE_METADATA, handler) as SharedResponseOptions | undefined;

/**
 * For `ttlMs` one answer for every caller of one URL: handler, interceptors, serialisation and compression run once. The key is
 * the method, the host, the path and query as sent, and `varyBy(request)`. Guards run for every request; pipes and interceptors
 * only for the one that makes the answer. When it has expired, one request makes the next while the others still get it.
 * An answer with `Set-Cookie`, `private` or `no-store`, a stream, or a status other than 200 serves its own request only.
 *
 * For GET handlers; on anything else the boot stops with `PERF_ERR_DECORATOR`.
 *
 * @example
 * ```ts
 * @Get('flights') @SharedResponse({ ttlMs: 15_000 }) flights() { … }
 * ```
 * A request with `Authorization`, `Cookie` or somebody for `unit` gets an answer of its own, unless the answer is `public` or has
 * `s-maxage`, or the decorator has a `varyBy` or `forEveryone: true`.
 *
 * @throws PERF_ERR_OPTION naming the handler and the option; PERF_ERR_DECORATOR where one stands already
 */
export function SharedResponse(options: SharedResponseOptions): MethodDecorator {
  return (target, property, descriptor) => {
    const where = decoratedPlace(target, property);
    const method: unknown = (descriptor as PropertyDescriptor | undefined)?.value;
    if (typeof method !== 'function') {
      throw new PerfError(
        'PERF_ERR_DECORATOR',
        `@SharedResponse() on "${where}" needs a GET handler, got no method. Move it to the handler that serves the data.`,
      );
    }
    table.read(options, `${where} @SharedResponse`);
    // The second one's guard would wait for the answer that the first one's has begun.
    if (Reflect.hasOwnMetadata(SHARED_RESPONSE_METADATA, method)) {
      throw new PerfError(
        'PERF_ERR_DECORATOR',
        `@SharedResponse() stands on "${where}" twice, and one must say how its answer is shared. Remove the other, which may be part of a composed decorator.`,
      );
    }
    applyDecorators(
      SetMetadata(SHARED_RESPONSE_METADATA, Object.freeze({ ...options })),
      UseGuards(new SharedResponseGuard()),
      UseFilters(new SharedResponseFilter()),
    )(target, property, descriptor);
  };
}

const MILLISECONDS = 'a number of milliseconds';
const table = object({
  ttlMs: number({ unit: MILLISECONDS }),
  varyBy: optional(
    value<NonNullable<SharedResponseOptions['varyBy']>>(
      'a function of the request that returns a string',
      (given) => typeof given === 'function',
    ),
  ),
  forEveryone: boolean({ default: false }),
  waitMs: optionalNumber({ unit: MILLISECONDS, max: MAX_TIMER_MS }),
});

/** What the guard rejects with instead of running the handler: the answer is there already. Not an error, so it has no stack. */
export class SharedResponseFound {
  /** For whoever sees it pass, a tracer for example. */
  readonly message = 'A shared response was found; the handler need not run.';

  /** `kept` null: nobody waits for an answer any more. */
  constructor(readonly kept: KeptResponse | null) {}
}

interface HttpRequest extends IncomingMessage {
  originalUrl?: string;
  /** Express's: what stands before `url`. */
  baseUrl?: string;
}
interface HttpResponse {
  send(body?: unknown): unknown;
  getHeaders(): Headers;
  removeHeader(name: string): unknown;
  /** Fastify's: what middleware has put there would show through. */
  readonly raw?: HttpResponse;
}

/**
 * The last guard of a `@SharedResponse()` handler: finds the answer, waits for the one being made, or lets the request make it.
 * A guard, because interceptors run before route-level ones could stop them and would transform the answer again for every
 * request. It stands in the class's metadata, which applications share, so it holds nothing: the route knows its own.
 */
export class SharedResponseGuard implements CanActivate {
  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (context.getType() !== 'http') return true;
    const request = context.getArgByIndex<HttpRequest>(0);
    const state = stateOf(request) ?? storedRequest() ?? null;
    const routes = state?.owner.sharedAnswers ?? null;
    if (state === null || routes === null) return true;
    const handler = context.getHandler();
    if (isUncompressed(handler)) state.uncompressed = true;
    const shared = routes.find(handler, `${context.getClass().name}.${handler.name}`) as SharedRoute;
    const admission = await shared.admit({
      method: request.method ?? 'GET',
      url: targetOf(request),
      host: String(request.headers.host ?? request.headers[':authority'] ?? ''),
      request,
      // `unit` reads what guards have found out: this one is the last of them.
      sign: () => signOf(request.headers, () => shared.units.isForSomebody(state)),
      headers: () => headersOn(context.getArgByIndex(1), state).getHeaders(),
      gone: () => hasGone(state.response),
    });
    if (admission.kind === 'gone') throw new SharedResponseFound(null);
    if (admission.kind === 'kept') throw new SharedResponseFound(admission.kept);
    if (admission.kind === 'lead') lead(admission.flight, state, request, context.getArgByIndex(1));
    return true;
  }
}

/** An adapter's own response may be any object: there Node's is read and written. */
function headersOn(response: Partial<HttpResponse>, state: RequestState): HttpResponse {
  const isKnown = typeof response.getHeaders === 'function' && typeof response.removeHeader === 'function';
  return (isKnown ? response : state.response) as HttpResponse;
}

/** As sent; and where somebody has rewritten it, what the handler is asked for. No target has a line break. */
function targetOf({ originalUrl, baseUrl = '', url = '' }: HttpRequest): string {
  const routed = `${baseUrl}${url}`;
  return originalUrl === undefined || originalUrl === routed ? routed : `${originalUrl}\n${routed}`;
}

/** Runs the handler for others too. */
function lead(
  flight: SharedFlight,
  state: RequestState,
  request: HttpRequest | FastifyRequest,
  reply: HttpResponse,
): void {
  state.sharedAnswer = flight;
  // Express would drop the body of an answer that this client has already, and with it the answer of everybody who
  // waits. The client still gets its 304, from the body.
  if ('raw' in request) hideCondition(state, request, reply);
  else Object.defineProperty(request, 'fresh', { value: false, configurable: true });
  const { response } = state;
  if (response === null || response.destroyed) flight.close(false);
  else response.once('close', () => flight.close(response.headersSent));
}

/** A response of HTTP/2 tells it by its stream. */
function hasGone(response: { destroyed?: boolean; stream?: { destroyed?: boolean } | null } | null): boolean {
  return response?.destroyed === true || response?.stream?.destroyed === true;
}

/** Sends the answer that the guard has found. The hook that sees every body recognises it by the request's state. */
@Catch(SharedResponseFound)
export class SharedResponseFilter implements ExceptionFilter {
  catch({ kept }: SharedResponseFound, host: ArgumentsHost): void {
    const state = stateOf(host.getArgByIndex(0)) ?? storedRequest() ?? null;
    // The guard found the answer through it.
    if (state === null || kept === null) return;
    state.sharedAnswer = kept;
    const response = headersOn(host.getArgByIndex(1), state);
    for (const name of kept.removed) {
      response.removeHeader(name);
      response.raw?.removeHeader(name);
    }
    const age = kept.ageAt(monotonicMs());
    const headers: Record<string, string | number | readonly string[]> = {
      ...Object.fromEntries(kept.headers),
      ...(age === null ? null : { age: String(age) }),
    };
    const vary = [response.getHeaders()['vary'] ?? [], headers['vary'] ?? []].flat().filter((member) => member !== '');
    if (vary.length > 0) headers['vary'] = vary.join(', ');
    const answer = { status: 200, headers, body: kept.entry.source };
    trackerOf(state).platform?.answer(response, answer);
  }
}
