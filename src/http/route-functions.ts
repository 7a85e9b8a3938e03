import type { IncomingMessage } from 'node:http';
import { RequestMethod } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { attach } from '../core/attachment.js';
import type { RequestState } from '../core/request-state.js';
import { methodLabel, type Route, type RouteHandler, type Routes } from '../core/route.js';
import { HANDLER_METADATA, type ControllerHandlers } from './handlers.js';
import { stateOf, type RequestLifecycle } from './lifecycle.js';
import { FASTIFY_ROUTE_CONFIG_METADATA, METHOD_METADATA } from './nest-metadata.js';

/** A function that a framework calls for a route. Positional arguments, so that none is copied. */
export type RouteFunction = (this: unknown, first: unknown, second: unknown, third: unknown) => unknown;

/** Runs route functions in a way that a look at the blocked stack can tell their request. Passes on what they return or throw. */
export interface RouteRunner {
  runRoute(
    state: RequestState,
    route: RouteFunction,
    self: unknown,
    first: unknown,
    second: unknown,
    third: unknown,
  ): unknown;
}

/** An application's; there is none while nobody looks at the stack. */
export const ROUTE_RUNNER = attach<RouteRunner>('application');

/** Where a Fastify route's `config` carries our {@link Route}. */
export const ROUTE: unique symbol = Symbol('perf:route');

type RouteTriggered = (requestMethod: RequestMethod, path: string) => unknown;
/** The part of an adapter that Nest registers routes with, by name: `get`, `post`, … */
type Registrar = Record<string, ((this: unknown, ...parameters: unknown[]) => unknown) | undefined>;

const REGISTERING = Object.values(RequestMethod)
  .filter((method) => typeof method === 'string')
  .map((method) => method.toLowerCase());

/**
 * Sees a controller's route functions while Nest registers them: from then on they have a route, and run by name. Returns what gives
 * back adapter and `handlers`; it is called at the latest when Nest has registered all, or has failed to.
 */
export function watchRegistration(
  adapter: AbstractHttpAdapter,
  handlers: ControllerHandlers,
  requests: RequestLifecycle,
  routes: Routes,
): () => void {
  let hasBegun = false;
  let over = false;
  const registrar = adapter as unknown as Registrar;
  const undo = [() => handlers.giveBack()];
  const giveBack = (): void => {
    over = true;
    for (const restore of undo.splice(0).reverse()) restore();
  };
  const begins = (): void => handlers.askForRequests();
  // Nest 11 puts a function without metadata around a route function when somebody has asked to hear of triggered routes.
  // So that is done here, as Nest 12 does it. Not needed any more once Nest 11 is not supported.
  const ask = registrar['getOnRouteTriggered'];
  let triggered: RouteTriggered | undefined;
  if (typeof ask === 'function') {
    undo.push(
      replace(registrar, 'getOnRouteTriggered', begins, () => {
        triggered = ask.call(adapter) as RouteTriggered | undefined;
        return undefined;
      }),
    );
  }
  for (const name of REGISTERING) {
    const register = registrar[name];
    if (typeof register !== 'function') continue;
    undo.push(
      replace(registrar, name, begins, (...parameters) => {
        const [path, given] = parameters;
        const handler = typeof given === 'function' ? handlerOf(given) : null;
        // Several applications may share an adapter.
        if (over || handler === null || !handlers.knows(handler)) return register.apply(adapter, parameters);
        // Nest registers all routes in one go. Also when one of them fails, nothing may be left on classes.
        if (!hasBegun) queueMicrotask(giveBack);
        hasBegun = true;
        const route = routes.create(methodLabel(name.toUpperCase()), String(path), handler);
        const run = runnable(given as RouteFunction, route, requests);
        const told = triggered === undefined ? run : telling(triggered, String(path), given as RouteFunction, run);
        return register.call(adapter, path, standFor(given as RouteFunction, route, told));
      }),
    );
  }
  return giveBack;
}

const handlerOf = (routeFunction: object): RouteHandler | null =>
  (Reflect.getMetadata(HANDLER_METADATA, routeFunction) as RouteHandler | undefined) ?? null;

/** The route of a function that has been registered: Nest 11 registers `@All()` with Fastify without a `config`. */
export const routeOf = (registered: object): Route | null =>
  (Reflect.getMetadata(FASTIFY_ROUTE_CONFIG_METADATA, registered) as { [ROUTE]?: Route } | undefined)?.[ROUTE] ?? null;

/** Calls the same function, whose route is known, and runs it by name where the application has a {@link ROUTE_RUNNER}. */
export function runnable(routeFunction: RouteFunction, route: Route, requests: RequestLifecycle): RouteFunction {
  const runner = ROUTE_RUNNER.get(requests);
  return function run(this: unknown, request, response, next): unknown {
    const state = stateOf(request);
    if (state === null) return routeFunction.call(this, request, response, next);
    if (state.owner !== requests) {
      // It has passed another application's middleware since it passed ours.
      const own = requests.start(state.request!, state.response!);
      return requests.enter(own, () => run.call(this, request, response, next));
    }
    // Told here because a look at the stack may not ask: it runs inside an interrupt. On Express each version of a route is
    // called in turn, and the last one answers.
    state.route = route.forMethod((state.request as IncomingMessage).method);
    const handOn = typeof next === 'function' ? handingOn(next as Next, state, requests) : next;
    return requests.enter(state, () =>
      runner === null
        ? routeFunction.call(this, request, response, handOn)
        : runner.runRoute(state, routeFunction, this, request, response, handOn),
    );
  };
}

type Next = (error?: unknown) => unknown;

/** Express's `next`: a route of another version or host hands the request on, and it may have been the last. */
function handingOn(next: Next, state: RequestState, requests: RequestLifecycle): Next {
  return (error) => {
    if (error === undefined) requests.handOn(state);
    return next(error);
  };
}

function telling(triggered: RouteTriggered, path: string, routeFunction: object, run: RouteFunction): RouteFunction {
  const method =
    (Reflect.getMetadata(METHOD_METADATA, routeFunction) as RequestMethod | undefined) ?? RequestMethod.GET;
  return function (this: unknown, request, response, next) {
    triggered(method, path);
    return run.call(this, request, response, next);
  };
}

/** Metadata and properties, the version for example, are the route function's own. */
function standFor(routeFunction: RouteFunction, route: Route, run: RouteFunction): RouteFunction {
  Object.setPrototypeOf(run, routeFunction);
  const config = Reflect.getMetadata(FASTIFY_ROUTE_CONFIG_METADATA, routeFunction) as object | undefined;
  Reflect.defineMetadata(FASTIFY_ROUTE_CONFIG_METADATA, { ...config, [ROUTE]: route }, run);
  return Object.defineProperty(run, 'name', { value: routeFunction.name, configurable: true });
}

/** Puts a method on the object. None is deleted after: V8 keeps an object that has lost a property as a table. */
function replace(
  target: Registrar,
  name: string,
  asked: () => void,
  method: (...parameters: unknown[]) => unknown,
): () => void {
  const hidden = { configurable: true, enumerable: false };
  const before = Object.getOwnPropertyDescriptor(target, name) ?? { value: target[name], writable: true, ...hidden };
  // Nest takes the method off the adapter just before it looks at the handler.
  const get = (): unknown => {
    asked();
    return method;
  };
  Object.defineProperty(target, name, { get, ...hidden });
  return () => {
    // Another application that shares the adapter has put its own in front: it stays, and passes on.
    if (Object.getOwnPropertyDescriptor(target, name)?.get === get) Object.defineProperty(target, name, before);
  };
}
