import {
  HttpException,
  Inject,
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { defer, Observable } from 'rxjs';
import { requestContext } from '../core/request-context.js';
import type { RequestState } from '../core/request-state.js';
import type { Route } from '../core/route.js';
import { SKIP_METADATA } from '../http/handlers.js';
import { RequestLifecycle } from '../http/lifecycle.js';
import { Routes } from '../http/routes.js';

/** Nest's metadata keys of `@MessagePattern()` / `@EventPattern()` and of `@SubscribeMessage()`. */
const PATTERN_METADATA = 'microservices:pattern';
const MESSAGE_METADATA = 'message';
const METHODS: Readonly<Record<string, string>> = { rpc: 'RPC', ws: 'WS', graphql: 'GRAPHQL' };

/**
 * Measures microservice, WebSocket and GraphQL handlers for who asks with `@UseInterceptors(PerfInterceptor)`. The rows'
 * method is `RPC`, `WS` or `GRAPHQL`, their route the message pattern or `Type.field`; failures count as status 500 (or the
 * exception's own), an unsubscribed stream as aborted. HTTP handlers pass through: their requests are measured already.
 */
@Injectable()
export class PerfInterceptor implements NestInterceptor {
  /** By handler: found without building a string. */
  private readonly known = new WeakMap<object, Route>();

  constructor(
    @Inject(RequestLifecycle) private readonly lifecycle: RequestLifecycle,
    @Inject(Routes) private readonly routes: Routes,
  ) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const method = METHODS[context.getType<string>()];
    if (method === undefined) return next.handle();
    const route = this.routeOf(context, method);
    return new Observable((subscriber) => {
      const state = this.lifecycle.begin();
      state.route = route;
      // Entered inside subscribe: entered when the Observable is built, it would leak into whatever runs next.
      const subscription = requestContext.run(state, () =>
        // Deferred: what throws before it returns an Observable must end the scope as well.
        defer(() => next.handle()).subscribe({
          next: (value) => subscriber.next(value),
          error: (error: unknown) => {
            this.end(state, statusOf(error), false);
            subscriber.error(error);
          },
          complete: () => {
            this.end(state, 200, false);
            subscriber.complete();
          },
        }),
      );
      return () => {
        subscription.unsubscribe();
        this.end(state, 499, true);
      };
    });
  }

  private end(state: RequestState, status: number, aborted: boolean): void {
    this.lifecycle.end(state, status, aborted);
  }

  private routeOf(context: ExecutionContext, method: string): Route {
    const handler = context.getHandler();
    let route = this.known.get(handler);
    if (route === undefined) {
      const controller = context.getClass();
      const skipped =
        Reflect.getMetadata(SKIP_METADATA, handler) === true || Reflect.getMetadata(SKIP_METADATA, controller) === true;
      const name = `${controller.name}.${handler.name}`;
      const pattern = patternOf(context) ?? name;
      route = this.routes.create(method, pattern, {
        className: controller.name,
        methodName: handler.name,
        name,
        skipped,
      });
      this.known.set(handler, route);
    }
    return route;
  }
}

function patternOf(context: ExecutionContext): string | null {
  if (context.getType<string>() === 'graphql') {
    const info = context.getArgByIndex<{ parentType?: { name?: string }; fieldName?: string } | undefined>(3);
    return info?.fieldName === undefined ? null : `${info.parentType?.name ?? ''}.${info.fieldName}`;
  }
  const handler = context.getHandler();
  const pattern: unknown =
    Reflect.getMetadata(PATTERN_METADATA, handler) ?? Reflect.getMetadata(MESSAGE_METADATA, handler);
  const first: unknown = Array.isArray(pattern) ? pattern[0] : pattern;
  if (first === undefined || first === null) return null;
  return typeof first === 'string' ? first : JSON.stringify(first);
}

function statusOf(error: unknown): number {
  return error instanceof HttpException ? error.getStatus() : 500;
}
