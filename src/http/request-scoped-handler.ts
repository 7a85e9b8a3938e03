import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { defer, from, isObservable, lastValueFrom, mergeMap, of, type Observable } from 'rxjs';
import { lifecycleOf, stateOf } from './request-lifecycle.js';

/** Nest's metadata key of `@UseInterceptors()`. */
const INTERCEPTORS_METADATA = '__interceptors__';

/**
 * A request-scoped controller is built anew for every request, so nothing can stand on its instance: its handlers get an
 * interceptor instead (building the controller costs far more than that). It stands in the class's metadata, which
 * applications share, so it holds nothing: the request's own application knows what to do.
 */
class RequestScopedHandler implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (context.getType() !== 'http') return next.handle();
    const request: unknown = context.switchToHttp().getRequest();
    const state = stateOf(request);
    const lifecycle = state === null ? null : lifecycleOf(state);
    const arounds = lifecycle?.requestScoped.get(context.getClass(), context.getHandler().name) ?? [];
    if (arounds.length === 0) return next.handle();
    let proceed = (): unknown => lastValueFrom(next.handle(), { defaultValue: undefined });
    for (const around of arounds.toReversed()) {
      const inner = proceed;
      proceed = () => around(state, request, inner);
    }
    return defer(() => from(Promise.resolve(proceed()))).pipe(
      mergeMap((value) => (isObservable(value) ? value : of(value))),
    );
  }
}

/** Adds the interceptor to the method's own metadata, where Nest looks it up for each request-scoped instance. */
export function interceptRequestScoped(method: object): void {
  const existing = (Reflect.getMetadata(INTERCEPTORS_METADATA, method) ?? []) as unknown[];
  if (existing.some((entry) => entry instanceof RequestScopedHandler)) return;
  Reflect.defineMetadata(INTERCEPTORS_METADATA, [...existing, new RequestScopedHandler()], method);
}
