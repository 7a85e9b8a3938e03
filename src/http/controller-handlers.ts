import { Req, RequestMethod, type Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import type { RouteHandler } from '../core/route.js';
import type { Around, RequestScopedArounds } from './around.js';
import { functionLike } from './function-like.js';
import { stateOf } from './request-lifecycle.js';
import { interceptRequestScoped } from './request-scoped-handler.js';

/** Nest's metadata keys, stable since Nest 4; `@nestjs/common` 12 no longer exports their names. */
const PATH_METADATA = 'path';
const METHOD_METADATA = 'method';
const ROUTE_ARGS_METADATA = '__routeArguments__';
/** Key under which `@Req()` writes its parameter index: `RouteParamtypes.REQUEST` is 0. */
const REQUEST_PARAMETER = /^0:(\d+)$/;
/** Marks the parameter index that was added for {@link Around}, so that a second application does not take it for the user's. */
const ADDED_REQUEST_PARAMETER = 'perf:request-parameter';

/** Carries the {@link RouteHandler} from the route function to Express's route. */
export const HANDLER_METADATA = 'perf:handler';
/** The Fastify adapter copies what stands under this key to the route's own `config`. */
const FASTIFY_CONFIG_METADATA = '__fastify_route_config__';
/** Where the Fastify route's `config` carries the {@link RouteHandler}. */
export const HANDLER: unique symbol = Symbol('perf:handler');
/** Nest's metadata key of `@Sse()`. */
const SSE_METADATA = '__sse__';
/** Set by `@SkipPerf()`. */
export const SKIP_METADATA = 'perf:skip';

type Method = (this: unknown, ...parameters: unknown[]) => unknown;

/** A controller method that serves a route, looked at once, at boot. */
export interface HandlerSite {
  readonly controller: Type;
  readonly methodName: string;
  /** The method as the class declares it: the place of its metadata. */
  readonly method: Method;
  readonly requestMethod: RequestMethod;
  /** `@Sse()` stands on it: it answers with server-sent events. */
  readonly sendsEvents: boolean;
  readonly handler: RouteHandler;
}

/** A feature's decision about one handler: what runs around it, or null to leave it alone. */
export type AroundFactory = (site: HandlerSite) => Around | null;

interface ControllerWrapper {
  readonly metatype: unknown;
  readonly instance: object | undefined;
  isDependencyTreeStatic(): boolean;
}

/**
 * Prepares every controller method of the application before Nest registers its routes: names it (the metadata travels
 * to the framework's route) and puts around it what features ask for. The function stands on the controller's instance
 * only until the routes are registered, so each application has its own and the class is left as it was.
 *
 * Why not interceptors: one costs each request 7 to 12 µs on Nest 12 and about 100 µs on Nest 11.
 */
export class ControllerHandlers {
  private readonly factories: AroundFactory[] = [];
  private readonly placed: { instance: object; methodName: string; method: Method }[] = [];
  readonly sites: HandlerSite[] = [];

  constructor(private readonly requestScoped: RequestScopedArounds) {}

  /** Registers a feature's wish; before {@link place}. */
  around(factory: AroundFactory): void {
    this.factories.push(factory);
  }

  /** Puts the route functions in place. Call before routes are registered. */
  place(modules: ModulesContainer): void {
    for (const module of modules.values()) {
      for (const wrapper of module.controllers.values()) this.placeController(wrapper);
    }
  }

  /**
   * Puts the methods in the place of the route functions again. Call when routes are registered. Nothing is deleted: V8 keeps an
   * object that has lost a property as a table, and every `this.` in its methods would be slower from then on.
   * The price: a patch of the controller's prototype no longer reaches the handlers of instances that exist.
   */
  remove(): void {
    for (const { instance, methodName, method } of this.placed) Reflect.set(instance, methodName, method);
    this.placed.length = 0;
  }

  private placeController(wrapper: ControllerWrapper): void {
    const { metatype, instance } = wrapper;
    if (typeof metatype !== 'function' || instance === undefined || instance === null) return;
    const controller = metatype as Type;
    for (const methodName of methodNames(controller.prototype as object)) {
      const method = (controller.prototype as Record<string, Method>)[methodName]!;
      if (Reflect.getMetadata(PATH_METADATA, method) === undefined) continue;
      if (Object.hasOwn(instance, methodName)) continue;
      const site = siteOf(controller, methodName, method);
      this.sites.push(site);
      const arounds = this.factories.map((factory) => factory(site)).filter((around) => around !== null);
      const isStatic = wrapper.isDependencyTreeStatic();
      const routeFunction = isStatic ? compose(site, arounds) : compose(site, []);
      if (!isStatic && arounds.length > 0) {
        this.requestScoped.set(controller, methodName, arounds);
        interceptRequestScoped(method);
      }
      copyMetadata(method, routeFunction);
      Reflect.defineMetadata(HANDLER_METADATA, site.handler, routeFunction);
      const config = Reflect.getMetadata(FASTIFY_CONFIG_METADATA, method) as object | undefined;
      Reflect.defineMetadata(FASTIFY_CONFIG_METADATA, { ...config, [HANDLER]: site.handler }, routeFunction);
      const done = Reflect.defineProperty(instance, methodName, {
        value: routeFunction,
        configurable: true,
        writable: true,
        enumerable: false,
      });
      if (done) this.placed.push({ instance, methodName, method });
    }
  }
}

function siteOf(controller: Type, methodName: string, method: Method): HandlerSite {
  const skipped =
    Reflect.getMetadata(SKIP_METADATA, method) === true || Reflect.getMetadata(SKIP_METADATA, controller) === true;
  const handler: RouteHandler = {
    className: controller.name,
    methodName,
    name: `${controller.name}.${methodName}`,
    skipped,
  };
  const requestMethod =
    (Reflect.getMetadata(METHOD_METADATA, method) as RequestMethod | undefined) ?? RequestMethod.GET;
  const sendsEvents = Reflect.getMetadata(SSE_METADATA, method) === true;
  return { controller, methodName, method, requestMethod, sendsEvents, handler };
}

/** Methods along the prototype chain, as Nest's own scanner sees them: the nearest of a name wins, accessors are left out. */
function methodNames(prototype: object): Set<string> {
  const names = new Set<string>();
  const seen = new Set<string>();
  for (let at: object | null = prototype; at !== null && at !== Object.prototype; at = Reflect.getPrototypeOf(at)) {
    for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (seen.has(name)) continue;
      seen.add(name);
      if (name !== 'constructor' && typeof property.value === 'function') names.add(name);
    }
  }
  return names;
}

function compose(site: HandlerSite, arounds: readonly Around[]): Method {
  const { method } = site;
  if (arounds.length === 0) return functionLike(method, method);
  const { index, added } = requestParameter(site);
  const [first, ...rest] = arounds;
  return functionLike(method, function (this: unknown, ...parameters) {
    const request = parameters[index];
    // `length = index` takes three times as long.
    while (added && parameters.length > index) parameters.pop();
    const state = stateOf(request);
    let proceed = (): unknown => method.apply(this, parameters);
    for (let i = rest.length - 1; i >= 0; i--) {
      const inner = proceed;
      const around = rest[i]!;
      proceed = () => around(state, request, inner);
    }
    return first!(state, request, proceed);
  });
}

/** Where the handler receives the request: the user's own `@Req()`, else one that is added behind its parameters. */
function requestParameter({ controller, methodName, method }: HandlerSite): { index: number; added: boolean } {
  const added = Reflect.getMetadata(ADDED_REQUEST_PARAMETER, controller, methodName) as number | undefined;
  if (added !== undefined) return { index: added, added: true };
  const parameters = (Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, methodName) ?? {}) as Record<
    string,
    { index: number }
  >;
  let next = method.length;
  for (const [key, { index }] of Object.entries(parameters)) {
    if (REQUEST_PARAMETER.test(key)) return { index, added: false };
    next = Math.max(next, index + 1);
  }
  Req()(controller.prototype as object, methodName, next);
  Reflect.defineMetadata(ADDED_REQUEST_PARAMETER, next, controller, methodName);
  return { index: next, added: true };
}

function copyMetadata(from: Method, to: Method): void {
  for (const key of Reflect.getMetadataKeys(from) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, from), to);
  }
}
