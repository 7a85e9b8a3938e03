import { HttpException, Inject, Injectable } from '@nestjs/common';
import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { defer, Observable } from 'rxjs';
import { entryOf } from '../core/entry-of.js';
import { requestContext, storedRequest, type RequestState } from '../request/request-state.js';
import type { Route } from '../request/routes.js';
import { PerfApplication } from '../request/application.js';
import { stateOf, type RequestTracker } from '../request/tracker.js';
import { MESSAGE_METADATA, PATTERN_METADATA } from '../request/nest-metadata.js';
import { routeHandlerOf } from '../request/route-handler.js';

const METHODS: Readonly<Record<string, string>> = { rpc: 'RPC', ws: 'WS', graphql: 'GRAPHQL' };
/** Clients choose the names of operations: no more of them than this get rows of their own. */
const MAX_OPERATIONS = 100;
const MAX_OPERATION_LENGTH = 100;
/** Rows are operations times resolvers: beyond this many, a resolver has one row for all further operations. */
const MAX_OPERATION_ROWS = 1_000;
/** Calls under way: one that is asked for globally and by its class as well is measured once. */
const MEASURED = new WeakSet<ExecutionContext>();

interface ResolveInfo {
  readonly fieldName?: string;
  readonly parentType?: { readonly name?: string };
  readonly operation?: { readonly name?: { readonly value?: string } };
}

/**
 * Measures microservice, WebSocket and GraphQL handlers for who asks with `@UseInterceptors(PerfInterceptor)`. The rows'
 * method is `RPC`, `WS` or `GRAPHQL`, their route the message pattern, or `Type.field` and in brackets the operation that asked
 * for it (of the first 100 names, at most 1,000 rows); failures count as status 500 (or the exception's own), an unsubscribed stream as aborted. HTTP
 * handlers pass through: their requests are measured already.
 */
@Injectable()
export class PerfInterceptor implements NestInterceptor {
  /** By class, handler (subclasses share theirs), and then by GraphQL operation: found without building a string. */
  private readonly known = new Map<object, Map<object, Map<string, Route>>>();
  private readonly operations = new Set<string>();
  private readonly lifecycle: RequestTracker;
  /** Rows with an operation in their name. */
  private operationRows = 0;

  /** @internal */
  constructor(@Inject(PerfApplication) private readonly application: PerfApplication) {
    this.lifecycle = application.requests;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const method = METHODS[context.getType<string>()];
    if (method === undefined || MEASURED.has(context)) return next.handle();
    const route = this.routeOf(context, method);
    return new Observable((subscriber) => {
      MEASURED.add(context);
      const within = method === METHODS['graphql'] ? this.requestOf(context) : null;
      const state = this.lifecycle.begin(within);
      state.route = route;
      // Entered inside subscribe: entered when the Observable is built, it would leak into whatever runs next.
      const subscription = requestContext.run(state, () =>
        // Deferred: what throws before it returns an Observable must end the scope as well.
        defer(() => next.handle()).subscribe({
          next: (value) => subscriber.next(value),
          error: (error: unknown) => {
            this.lifecycle.end(state, statusOf(error), false);
            subscriber.error(error);
          },
          complete: () => {
            this.lifecycle.end(state, 200, false);
            subscriber.complete();
          },
        }),
      );
      return () => {
        MEASURED.delete(context);
        subscription.unsubscribe();
        this.lifecycle.end(state, 499, true);
      };
    });
  }

  /** The HTTP request that a resolver answers a part of: deferred work, calls and blocks in it are that request's; its notes are its own. */
  private requestOf(context: ExecutionContext): RequestState | null {
    const { req } = context.getArgByIndex<{ req?: unknown } | undefined>(2) ?? {};
    const state = storedRequest() ?? stateOf(req);
    if (state === null || state.owner !== this.lifecycle || state.closed) return null;
    return state.request === null ? null : state;
  }

  private routeOf(context: ExecutionContext, method: string): Route {
    const [owner, handler] = [context.getClass(), context.getHandler()];
    const operation = method === METHODS['graphql'] ? this.operationOf(infoOf(context)) : '';
    const handlers = entryOf(this.known, owner, () => new Map<object, Map<string, Route>>());
    const routes = entryOf(handlers, handler, () => new Map<string, Route>());
    const known = routes.get(operation);
    if (known !== undefined) return known;
    if (operation !== '' && this.operationRows >= MAX_OPERATION_ROWS) return this.rowFor(routes, '', method, context);
    if (operation !== '') this.operationRows += 1;
    return this.rowFor(routes, operation, method, context);
  }

  private rowFor(routes: Map<string, Route>, operation: string, method: string, context: ExecutionContext): Route {
    return entryOf(routes, operation, () => {
      const [owner, handler] = [context.getClass(), context.getHandler()];
      const named = routeHandlerOf(owner, handler, handler.name);
      const pattern = patternOf(context) || named.name;
      return this.application.routes.create(method, operation === '' ? pattern : `${pattern} (${operation})`, named);
    });
  }

  /** `''` for an operation without a name, and for what comes beyond {@link MAX_OPERATIONS}. */
  private operationOf(info: ResolveInfo | undefined): string {
    const name = info?.operation?.name?.value ?? '';
    if (this.operations.has(name)) return name;
    if (name === '' || name.length > MAX_OPERATION_LENGTH || this.operations.size >= MAX_OPERATIONS) return '';
    this.operations.add(name);
    return name;
  }
}

/** The fourth argument of every resolver. */
const infoOf = (context: ExecutionContext): ResolveInfo | undefined => context.getArgByIndex(3);

/** `''` where nothing tells. Which of a handler's several patterns a message had, not every transport says: it names them all. */
function patternOf(context: ExecutionContext): string {
  if (context.getType<string>() === 'graphql') {
    const info = infoOf(context);
    return info?.fieldName === undefined ? '' : `${info.parentType?.name ?? ''}.${info.fieldName}`;
  }
  const handler = context.getHandler();
  const pattern: unknown =
    Reflect.getMetadata(PATTERN_METADATA, handler) ?? Reflect.getMetadata(MESSAGE_METADATA, handler);
  const all = [pattern].flat().map((each) => (typeof each === 'string' ? each : JSON.stringify(each)));
  return all.join(', ');
}

function statusOf(error: unknown): number {
  return error instanceof HttpException ? error.getStatus() : 500;
}
