import { Inject, Injectable } from '@nestjs/common';
import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { defer, Observable } from 'rxjs';
import type { WorkType } from '../core/record.js';
import { listMethods } from '../request/prototypes.js';
import { storedRequest, type RequestState } from '../request/request-state.js';
import { subscribeInScope } from './run-measured.js';
import { WorkFeature } from './work.feature.js';
import { findEntryType } from './work-type.js';

/**
 * Measures messages, events, socket messages and GraphQL operations, each call as a scope of its own: with
 * `@UseInterceptors(PerfInterceptor)` on a handler or its class, or all of them with `PerfModule.forRoot({ work: true })`.
 * HTTP handlers pass through: their requests are measured already.
 */
@Injectable()
export class PerfInterceptor implements NestInterceptor {
  /** @internal */
  constructor(@Inject(WorkFeature) private readonly work: WorkFeature) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const type = chooseType(context);
    if (type === null) return next.handle();
    return new Observable((subscriber) => {
      const { work } = this;
      const [owner, method] = [context.getClass(), context.getHandler()];
      const measured = { owner, name: findName(owner, method), method };
      const within = type === 'graphql' ? this.findRequest() : undefined;
      const state = work.begin(type, measured, within);
      if (state === null) return next.handle().subscribe(subscriber);
      // Deferred: what throws before it returns an Observable must end the scope as well.
      const answer = defer(() => next.handle());
      // Entered inside subscribe: entered when the Observable is built, it would leak into whatever runs next.
      return subscribeInScope(work, state, answer, subscriber, true);
    });
  }

  /** The HTTP request that a resolver answers a part of: deferred work, calls and blocks in it are that request's as well. */
  private findRequest(): RequestState | null {
    const state = storedRequest();
    if (state === undefined || state.owner !== this.work.host.requests || state.closed) return null;
    return state.request === null ? null : state;
  }
}

const NAMES = new WeakMap<object, string>();

/** Another decorator may have put a function without the method's name in its place. */
function findName({ prototype }: { readonly prototype?: object }, method: { readonly name: string }): string {
  const known = NAMES.get(method);
  if (known !== undefined) return known;
  const found = listMethods(prototype ?? {}).find(([, one]) => one === method);
  const name = found?.[0] ?? method.name;
  NAMES.set(method, name);
  return name;
}

function chooseType(context: ExecutionContext): WorkType | null {
  switch (context.getType<string>()) {
    case 'rpc':
      return findEntryType(context.getHandler()) === 'event' ? 'event' : 'message';
    case 'ws':
      return 'socket';
    case 'graphql':
      return 'graphql';
    default:
      return null;
  }
}
