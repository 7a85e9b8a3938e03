import { RequestMethod, type Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { PerfError } from '../core/perf.error.js';
import type { RouteHandler } from '../core/route.js';
import { likeMethod, putOn } from '../core/stand-in.js';
import { hasHandlerInterceptor, spareHandlerInterceptor } from './handler.interceptor.js';
import type { Around, RequestScopedArounds } from './handler.interceptor.js';
import { stateOf } from './lifecycle.js';
import { METHOD_METADATA, SSE_METADATA } from './nest-metadata.js';
import { methodsOf } from './prototypes.js';
import { RequestParameters, type RequestParameter } from './request-parameter.js';
import { routeHandlerOf, servesRoute } from './route-handler.js';

/** On what stands for a handler: Nest copies it to the route function. */
export const HANDLER_METADATA = 'perf:handler';

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
 * Puts what features ask for around the handlers of an application's controllers. A function stands for each on the
 * controller's instance while Nest registers the routes, and is taken away again: classes and instances stay as they were.
 * Why no interceptors: one costs each request 7 to 12 µs on Nest 12 and about 100 µs on Nest 11.
 */
export class ControllerHandlers {
  readonly sites: HandlerSite[] = [];
  private readonly factories: AroundFactory[] = [];
  private innermost: Around | null = null;
  private readonly parameters = new RequestParameters();
  /** For each composed handler, how it asks for the request. */
  private readonly wanted: (() => void)[] = [];
  private readonly undo: (() => void)[] = [];
  readonly requestScoped: RequestScopedArounds = new Map();

  knows(handler: RouteHandler): boolean {
    return this.sites.some((site) => site.handler === handler);
  }

  /** Before {@link place}. Of two, the first is nearer to the handler. */
  around(factory: AroundFactory): void {
    this.factories.push(factory);
  }

  /** Runs around every handler, with nothing between. Before {@link place}. */
  aroundAll(around: Around): void {
    this.innermost = around;
  }

  /**
   * Call before routes are registered. `all` false: only those that something runs around.
   * @throws PERF_ERR_DECORATOR and what the factories throw
   */
  place(modules: ModulesContainer, all = true): void {
    for (const module of modules.values()) {
      for (const wrapper of module.controllers.values()) this.placeController(wrapper, all);
    }
  }

  /** Has Nest hand the request to each of them. Call when Nest begins to register routes, and reads their parameters. */
  askForRequests(): void {
    for (const want of this.wanted.splice(0)) want();
  }

  /** Gives back what was taken. Call when routes are registered, or will not be. */
  giveBack(): void {
    this.wanted.length = 0;
    for (const undo of this.undo.splice(0).reverse()) undo();
    this.parameters.giveBack();
  }

  private placeController(wrapper: ControllerWrapper, all: boolean): void {
    const { metatype, instance } = wrapper;
    if (typeof metatype !== 'function' || instance === undefined || instance === null) return;
    const controller = metatype as Type;
    for (const [methodName, declared] of methodsOf(controller.prototype as object)) {
      // What the application has put on the instance itself serves instead: a bound method, a test's spy.
      const method = (instance as Record<string, unknown>)[methodName];
      if (!servesRoute(declared) || typeof method !== 'function') continue;
      const site = siteOf(controller, methodName, declared as Method);
      const arounds = this.factories.map((factory) => factory(site)).filter((around) => around !== null);
      if (!all && arounds.length === 0) continue;
      this.sites.push(site);
      const isStatic = wrapper.isDependencyTreeStatic();
      if (!isStatic) this.placeRequestScoped(site, arounds);
      const wanted = this.wanted.length;
      const stands = this.standIn(site, method as Method, isStatic ? arounds : null);
      Reflect.defineMetadata(HANDLER_METADATA, site.handler, stands);
      const undo = putOn(instance, methodName, stands);
      if (undo !== null) this.undo.push(undo);
      if (undo !== null || !isStatic) continue;
      // A frozen instance: as for a controller that is built anew.
      this.wanted.length = wanted;
      this.placeRequestScoped(site, arounds);
    }
  }

  /** Such a controller is built anew for each request: its decorators have brought an interceptor, which asks here. */
  private placeRequestScoped({ controller, method, handler }: HandlerSite, arounds: readonly Around[]): void {
    if (arounds.length === 0) return;
    if (!hasHandlerInterceptor(method)) {
      throw new PerfError(
        'PERF_ERR_DECORATOR',
        `"${handler.name}" is inherited by a request-scoped controller, where a decorator on the class cannot reach it. ` +
          'Put the decorator on the method itself.',
      );
    }
    const methods = this.requestScoped.get(controller) ?? new Map<object, readonly Around[]>();
    this.requestScoped.set(controller, methods.set(method, this.withInnermost(arounds)));
  }

  /** `arounds` null: nothing runs around it, it only tells whose route it is. */
  private standIn(site: HandlerSite, method: Method, arounds: readonly Around[] | null): Method {
    const all = arounds === null ? [] : this.withInnermost(arounds);
    const run = likeMethod(all.length === 0 ? callThrough(method) : this.compose(site, method, all), method);
    if (arounds !== null) spareHandlerInterceptor(site.method, run);
    return run;
  }

  private withInnermost(arounds: readonly Around[]): readonly Around[] {
    return this.innermost === null ? arounds : [this.innermost, ...arounds];
  }

  private compose({ controller, methodName }: HandlerSite, method: Method, arounds: readonly Around[]): Method {
    let where: RequestParameter | null = null;
    const outermost = arounds.length - 1;
    this.wanted.push(() => {
      where = this.parameters.of(controller, methodName);
    });
    return function (this: unknown, ...parameters) {
      // Somebody else than Nest has called, before routes are registered.
      if (where === null) return method.apply(this, parameters);
      const { index, added } = where;
      const request = parameters[index];
      // `length = index` takes three times as long.
      while (added && parameters.length > index) parameters.pop();
      const state = stateOf(request);
      let proceed = (): unknown => method.apply(this, parameters);
      for (let i = 0; i < outermost; i++) {
        const inner = proceed;
        proceed = () => arounds[i]!(state, request, inner);
      }
      return arounds[outermost]!(state, request, proceed);
    };
  }
}

function callThrough(method: Method): Method {
  return function (this: unknown, ...parameters) {
    return method.apply(this, parameters);
  };
}

function siteOf(controller: Type, methodName: string, method: Method): HandlerSite {
  const handler = routeHandlerOf(controller, method, methodName);
  const requestMethod =
    (Reflect.getMetadata(METHOD_METADATA, method) as RequestMethod | undefined) ?? RequestMethod.GET;
  const sendsEvents = Reflect.getMetadata(SSE_METADATA, method) === true;
  return { controller, methodName, method, requestMethod, sendsEvents, handler };
}
