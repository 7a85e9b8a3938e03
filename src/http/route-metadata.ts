import { RequestMethod } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { HANDLER_METADATA } from './controller-handlers.js';

type RouteTriggered = (requestMethod: RequestMethod, path: string) => unknown;
type RouteFunction = (...parameters: unknown[]) => unknown;
/** The part of an adapter that Nest registers routes with, by name: `get`, `post`, … */
type Registrar = Record<string, RouteFunction | undefined>;

const REGISTER = Object.values(RequestMethod)
  .filter((method) => typeof method === 'string')
  .map((method) => method.toLowerCase());

/**
 * Nest 11 puts a function around every route function when somebody has asked to hear of triggered routes, as
 * `@nestjs/observe` does, and leaves the route function's metadata behind: its name, `@SkipPerf()`, and the user's own
 * `@RouteConfig()`. Nest 12 copies it. Here it is done as Nest 12 does it, on both, until the returned function is called
 * (when routes are registered). Not needed any more once Nest 11 is not supported.
 */
export function keepRouteMetadata(adapter: AbstractHttpAdapter): () => void {
  const registrar = adapter as unknown as Registrar;
  const ask = registrar['getOnRouteTriggered'];
  if (typeof ask !== 'function') return () => {};
  let triggered: RouteTriggered | undefined;
  const restore = [
    replace(registrar, 'getOnRouteTriggered', () => {
      triggered = ask.call(adapter) as RouteTriggered | undefined;
      return undefined;
    }),
  ];
  for (const name of REGISTER) {
    const register = registrar[name];
    if (typeof register !== 'function') continue;
    const registerKept: RouteFunction = function (...parameters) {
      const [path, routeFunction] = parameters;
      if (triggered === undefined || !isControllers(routeFunction)) return register.apply(adapter, parameters);
      return register.call(adapter, path, telling(triggered, String(path), routeFunction));
    };
    restore.push(replace(registrar, name, registerKept));
  }
  return () => {
    for (const undo of restore) undo();
  };
}

function isControllers(routeFunction: unknown): routeFunction is RouteFunction {
  return typeof routeFunction === 'function' && Reflect.hasMetadata(HANDLER_METADATA, routeFunction);
}

/** The route function, with everything that is attached to it, after `triggered` has been told. */
function telling(triggered: RouteTriggered, path: string, routeFunction: RouteFunction): RouteFunction {
  const method = (Reflect.getMetadata('method', routeFunction) as RequestMethod | undefined) ?? RequestMethod.GET;
  const told = Object.assign((...parameters: unknown[]) => {
    triggered(method, path);
    return routeFunction(...parameters);
  }, routeFunction);
  Object.defineProperty(told, 'name', { value: routeFunction.name, configurable: true });
  for (const key of Reflect.getMetadataKeys(routeFunction) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, routeFunction), told);
  }
  return told;
}

/**
 * Puts a method on the object itself; the returned function puts the one before it in its place. It is not deleted: V8 keeps an
 * object that has lost a property as a table, and an adapter is asked for a dozen properties by each request.
 */
function replace(target: Registrar, name: string, method: RouteFunction): () => void {
  const before = Object.getOwnPropertyDescriptor(target, name) ?? {
    value: target[name],
    configurable: true,
    writable: true,
    enumerable: false,
  };
  Object.defineProperty(target, name, { value: method, configurable: true, writable: true, enumerable: false });
  return () => {
    Object.defineProperty(target, name, before);
  };
}
