import type { CallHandler, ExecutionContext, NestInterceptor, Type } from '@nestjs/common';
import { defer, isObservable, mergeMap, of, type Observable } from 'rxjs';
import { attach } from '../core/attachment.js';
import type { RequestState } from '../core/request-state.js';
import { stateOf } from './lifecycle.js';
import { INTERCEPTORS_METADATA } from './nest-metadata.js';
import { servesRoute } from './route-handler.js';

/** Whether Nest runs a handler for an HTTP request, and not for a message or a GraphQL field. */
export const isHttp = (context: ExecutionContext): boolean => context.getType() === 'http';

/** Runs around a handler, after guards and pipes. `state` is null when the request is not observed. */
export type Around = (state: RequestState | null, request: unknown, proceed: () => unknown) => unknown;

/** By class and method: what runs around the handlers of an application's request-scoped controllers. */
export type RequestScopedArounds = Map<Type, Map<object, readonly Around[]>>;
export const REQUEST_SCOPED = attach<RequestScopedArounds>('application');

/**
 * A request-scoped controller is built anew for every request, so nothing can stand on its instance. A decorator that needs
 * something around its handler brings this interceptor along. It holds nothing: the request's own application knows what to do.
 */
class HandlerInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (!isHttp(context)) return next.handle();
    const request: unknown = context.switchToHttp().getRequest();
    const state = stateOf(request);
    const methods = state === null ? null : (REQUEST_SCOPED.get(state.owner)?.get(context.getClass()) ?? null);
    const arounds = methods?.get(context.getHandler()) ?? [];
    if (arounds.length === 0) return next.handle();
    let proceed = (): unknown => next.handle();
    for (const around of arounds) {
      const inner = proceed;
      proceed = () => around(state, request, inner);
    }
    return defer(() => flat(proceed()));
  }
}
const INTERCEPTOR = new HandlerInterceptor();

/** A value, a promise of one, a stream, or a promise of a stream. */
function flat(result: unknown): Observable<unknown> {
  if (isObservable(result)) return result;
  return of(result).pipe(
    mergeMap(async (value) => value),
    mergeMap((value) => (isObservable(value) ? value : of(value))),
  );
}

/** For decorators on a class: brings the interceptor to every handler that it declares. */
export function bringHandlerInterceptors(controller: { readonly prototype: object }): void {
  for (const { value } of Object.values(Object.getOwnPropertyDescriptors(controller.prototype))) {
    const method: unknown = value;
    // The constructor is the class, which has a path of its own.
    if (typeof method !== 'function' || method === controller) continue;
    if (servesRoute(method)) bringHandlerInterceptor(method);
  }
}

export function bringHandlerInterceptor(method: object): void {
  const entries = interceptorsOf(method);
  if (entries.includes(INTERCEPTOR)) return;
  Reflect.defineMetadata(INTERCEPTORS_METADATA, [...entries, INTERCEPTOR], method);
}

const interceptorsOf = (method: object): readonly unknown[] =>
  (Reflect.getMetadata(INTERCEPTORS_METADATA, method) as readonly unknown[] | undefined) ?? [];

export const hasHandlerInterceptor = (method: object): boolean => interceptorsOf(method).includes(INTERCEPTOR);

/** Spares `standIn` the interceptor that its method has: what runs around it stands in itself. */
export function spareHandlerInterceptor(method: object, standIn: object): void {
  if (!hasHandlerInterceptor(method)) return;
  const others = interceptorsOf(method).filter((entry) => entry !== INTERCEPTOR);
  Reflect.defineMetadata(INTERCEPTORS_METADATA, others, standIn);
}
