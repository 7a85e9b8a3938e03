import { applyDecorators, SetMetadata, UseGuards, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { monotonicMs } from '../../core/clock.js';
import { boolean, object, optional, value } from '../../core/option.js';
import { duration, timeout } from '../../core/shared-options.js';
import { decoratedPlace } from '../../request/decorated-method.js';
import { PerfError } from '../../core/perf.error.js';
import { confirmRequest, type RequestState } from '../../request/request-state.js';
import { findTracker } from '../../request/tracker.js';
import { hasGone } from '../has-gone.js';
import type { CallerSign, Headers, KeptResponse, SharedFlight } from './shared-flight.js';
import type { SharedResponseOptions, SharedRoute } from './shared-route.js';

export const SHARED_RESPONSE_METADATA = 'perf:shared-response';

/** The decorator's options on a handler; undefined without the decorator. */
export const readSharedOptions = (handler: object): SharedResponseOptions | undefined =>
  Reflect.getMetadata(SHARED_RESPONSE_METADATA, handler) as SharedResponseOptions | undefined;

/**
 * For `ttlMs` one answer for every caller of one URL: handler, interceptors, serialisation and compression run once. The key is
 * the method, the host, the path and query as sent, and `varyBy(request)`. Guards run for every request; pipes and interceptors
 * only for the one that makes the answer. When it has expired, one request makes the next while the others still get it.
 * An answer with `Set-Cookie`, `private` or `no-store`, a stream, or a status other than 200 serves its own request only.
 *
 * A request with `Authorization`, `Cookie` or somebody for `unit` gets an answer of its own, unless the answer is `public` or has
 * `s-maxage`, or the decorator has a `varyBy` or `forEveryone: true`.
 *
 * For GET handlers; on anything else the boot stops with `PERF_ERR_DECORATOR`.
 *
 * @example
 * ```ts
 * @Get('flights') @SharedResponse({ ttlMs: 15_000 }) flights() { … }
 * ```
 * @throws PERF_ERR_OPTION naming the handler and the option; PERF_ERR_DECORATOR where the method has one already
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
    // The second guard would wait, for `waitMs`, for the answer that the first has begun.
    if (Reflect.hasOwnMetadata(SHARED_RESPONSE_METADATA, method)) {
      throw new PerfError(
        'PERF_ERR_DECORATOR',
        `@SharedResponse() stands on "${where}" twice, and one must say how its answer is shared. Remove the other, which may be part of a composed decorator.`,
      );
    }
    applyDecorators(
      SetMetadata(SHARED_RESPONSE_METADATA, Object.freeze({ ...options })),
      UseGuards(new SharedResponseGuard()),
    )(target, property, descriptor);
  };
}

const table = object({
  ttlMs: duration(),
  varyBy: optional(
    value<NonNullable<SharedResponseOptions['varyBy']>>(
      'a function of the request that returns a string',
      (given) => typeof given === 'function',
    ),
  ),
  forEveryone: boolean({ default: false }),
  waitMs: optional(timeout()),
});

interface HttpRequest extends IncomingMessage {
  originalUrl?: string;
  /** Set by Express: the path before `url`. */
  baseUrl?: string;
}
interface HttpResponse {
  getHeaders(): Headers;
}

/**
 * The last guard of a `@SharedResponse()` handler: sends a kept answer, waits for one, or lets the handler make it. Not an interceptor:
 * those outside of it would transform a kept answer again. Without state, since applications share the metadata of a class.
 */
export class SharedResponseGuard implements CanActivate {
  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (context.getType() !== 'http') return true;
    const request = context.getArgByIndex<HttpRequest>(0);
    const state = confirmRequest(request);
    const routes = state?.owner.sharedAnswers ?? null;
    // HEAD runs the handler. A GET with a body does as well: the body is not in the key.
    if (state === null || routes === null || (request.method ?? 'GET') !== 'GET' || hasBody(request.headers))
      return true;
    const { response } = state;
    // Middleware with a timeout has answered: the handler runs as it does without us.
    if (response === null) return true;
    const readHead = (): HttpResponse => headersOn(context.getArgByIndex(1), response);
    const shared = routes.find(context.getClass(), context.getHandler()) as SharedRoute;
    const admission = await shared.admit({
      urls: readTargets(request),
      hosts: readHosts(request.headers),
      request,
      // `unit` may read `request.user`, which guards before this one have set.
      sign: () => findSign(request.headers, () => shared.host.units.isForSomebody(state)),
      headers: () => readHead().getHeaders(),
      gone: () => hasGone(response),
    });
    if (admission.kind === 'gone') return answered();
    if (admission.kind === 'kept') {
      answer(admission.kept, state, readHead(), response);
      return answered();
    }
    if (admission.kind === 'lead') lead(admission.flight, state);
    return true;
  }
}

/** An unknown adapter's response may be any object: Node's is read then. */
function headersOn(response: Partial<HttpResponse>, raw: ServerResponse): HttpResponse {
  return (typeof response.getHeaders === 'function' ? response : raw) as HttpResponse;
}

/** `isForSomebody` comes last: it calls the application's `unit`. */
function findSign(headers: IncomingHttpHeaders, isForSomebody: () => boolean): CallerSign | null {
  if (headers.authorization !== undefined) return 'Authorization';
  if (headers.cookie !== undefined) return 'Cookie';
  return isForSomebody() ? 'unit' : null;
}

/** `Number()`, since function platforms give the length as a number. */
const hasBody = ({ 'content-length': length = '0', 'transfer-encoding': framing }: IncomingHttpHeaders): boolean =>
  Number(length) !== 0 || framing !== undefined;

/** An answer may have links that are made of any of these. */
const readHosts = (headers: IncomingHttpHeaders): unknown[] =>
  ['host', ':authority', 'x-forwarded-host', 'x-forwarded-proto'].map((name) => headers[name]);

/** The URL as sent, and the routed one where middleware has rewritten it. */
function readTargets({ originalUrl, baseUrl = '', url = '' }: HttpRequest): string[] {
  const routed = `${baseUrl}${url}`;
  return originalUrl === undefined || originalUrl === routed ? [routed] : [originalUrl, routed];
}

/**
 * Never resolves, so that Nest does nothing more for an answered request; tracers would record a thrown error. One promise for all
 * would retain every request that waits for it.
 */
const answered = (): Promise<never> => new Promise(() => {});

const CONDITIONS = ['if-none-match', 'if-modified-since'] as const;

/**
 * Lets the handler make the answer for others too. Hides the client's conditional headers until it has answered: a 304 of a framework
 * or plugin would have no body for the others. Compression compares them afterwards.
 */
function lead(flight: SharedFlight, state: RequestState): void {
  state.sharedAnswer = flight;
  const { request, response } = state;
  for (const name of CONDITIONS) {
    const value = request!.headers[name];
    if (value === undefined) continue;
    (state.hiddenConditions ??= {})[name] = value;
    delete request!.headers[name];
  }
  if (response === null || response.destroyed) flight.close(false);
  else response.once('close', () => flight.close(response.headersSent));
}

/** Sends a kept answer as a handler would, through the application's wrappers of the response. */
function answer(kept: KeptResponse, state: RequestState, response: HttpResponse, raw: ServerResponse): void {
  state.sharedAnswer = kept;
  const age = kept.ageAt(monotonicMs());
  const headers: Record<string, string | number | readonly string[]> = {
    ...Object.fromEntries(kept.headers),
    ...(age === null ? null : { age: String(age) }),
  };
  const vary = [response.getHeaders()['vary'] ?? [], headers['vary'] ?? []].flat().filter((member) => member !== '');
  if (vary.length > 0) headers['vary'] = vary.join(', ');
  findTracker(state).platform?.answer(response, { status: 200, headers, body: kept.entry.source }, raw);
}
