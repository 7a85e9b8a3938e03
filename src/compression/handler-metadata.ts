import { RequestMethod, SetMetadata, type CustomDecorator } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { PerfError } from '../core/perf.error.js';
import type { RouteHandler } from '../core/route.js';
import type { ControllerHandlers, HandlerSite } from '../http/handlers.js';
import { EXCEPTION_FILTERS_METADATA, GUARDS_METADATA, HOST_METADATA } from '../http/nest-metadata.js';
import { servesRoute } from '../http/route-handler.js';
import {
  SHARED_RESPONSE_METADATA,
  SharedResponseFilter,
  SharedResponseGuard,
} from './shared-response/shared-response.decorator.js';
import type { SharedResponseOptions } from './shared-response/shared-route.js';

const NO_COMPRESSION_METADATA = 'perf:no-compression';

/**
 * Sends the responses of a handler, or of every handler of a controller, without a content coding and keeps none of them
 * (beside `@SharedResponse()` the answer is shared unencoded). For responses that mix a secret (a token, a CSRF value, a
 * signed URL) with text that a request can choose: their length would tell about the secret (BREACH). On a method that serves
 * no route the boot stops with `PERF_ERR_DECORATOR`.
 */
export const NoCompression = (): CustomDecorator => SetMetadata(NO_COMPRESSION_METADATA, true);

/** What the decorators say about a handler. */
export interface HandlerCompression {
  readonly off: boolean;
  readonly shared: SharedResponseOptions | null;
  /** It serves some hosts, and may answer each otherwise. */
  readonly byHost: boolean;
}

const UNSAID: HandlerCompression = { off: false, shared: null, byHost: false };

/** What the decorators of this feature say, by handler, read once at boot. */
export class HandlerMetadata {
  private readonly known = new Map<RouteHandler, HandlerCompression>();

  /** Names of the handlers that `@NoCompression()` stands on. */
  readonly offHandlers: string[] = [];

  /** When handlers are placed. */
  readAll(handlers: ControllerHandlers): void {
    handlers.around((site) => {
      this.read(site);
      return null;
    });
  }

  private read(site: HandlerSite): void {
    const shared = sharedOn(site);
    const off =
      Reflect.getMetadata(NO_COMPRESSION_METADATA, site.method) === true ||
      Reflect.getMetadata(NO_COMPRESSION_METADATA, site.controller) === true;
    if (off) this.offHandlers.push(site.handler.name);
    const byHost = Reflect.getMetadata(HOST_METADATA, site.controller) !== undefined;
    if (shared !== null || off) this.known.set(site.handler, { off, shared, byHost });
  }

  of(handler: RouteHandler | null): HandlerCompression {
    return (handler === null ? undefined : this.known.get(handler)) ?? UNSAID;
  }
}

const sharedOn = ({ method }: HandlerSite): SharedResponseOptions | null =>
  (Reflect.getMetadata(SHARED_RESPONSE_METADATA, method) ?? null) as SharedResponseOptions | null;

/**
 * Looks for `@SharedResponse()` and `@NoCompression()` where no route is: message handlers, resolvers, plain methods; for the
 * first then on routes.
 * @returns the names of the handlers that the first stands on, complete when handlers are placed
 * @throws PERF_ERR_DECORATOR there, and for the first on anything but a GET handler, here or when handlers are placed
 */
export function refuseMisplaced(modules: ModulesContainer, handlers: ControllerHandlers): ReadonlySet<string> {
  for (const { where, method } of methodsWith(SHARED_RESPONSE_METADATA, modules)) {
    if (!servesRoute(method)) throw needsGet(where, 'no route');
  }
  for (const { where, method } of methodsWith(NO_COMPRESSION_METADATA, modules)) {
    if (servesRoute(method)) continue;
    throw new PerfError(
      'PERF_ERR_DECORATOR',
      `@NoCompression() on "${where}" needs a route handler, got no route. Move it to the handler that answers, or to its controller.`,
    );
  }
  const shared = new Set<string>();
  handlers.around((site) => {
    if (sharedOn(site) === null) return null;
    checkShared(site);
    shared.add(site.handler.name);
    return null;
  });
  return shared;
}

function* methodsWith(key: string, modules: ModulesContainer): IterableIterator<{ where: string; method: object }> {
  for (const { controllers, providers } of modules.values()) {
    for (const { metatype } of [...controllers.values(), ...providers.values()]) {
      if (typeof metatype !== 'function' || typeof metatype.prototype !== 'object' || metatype.prototype === null)
        continue;
      for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(metatype.prototype))) {
        // The constructor is the class: what stands on that is for the routes that it may have.
        if (name === 'constructor' || typeof value !== 'function' || !Reflect.hasMetadata(key, value as object))
          continue;
        yield { where: `${metatype.name}.${name}`, method: value as object };
      }
    }
  }
}

function needsGet(where: string, given: string): PerfError {
  return new PerfError(
    'PERF_ERR_DECORATOR',
    `@SharedResponse() on "${where}" needs a GET handler, got ${given}. ` +
      'Only what is read can be shared: remove the decorator, or move it to the GET handler that serves the data.',
  );
}

function checkShared(site: HandlerSite): void {
  if (site.requestMethod !== RequestMethod.GET || site.sendsEvents) {
    throw needsGet(site.handler.name, site.sendsEvents ? '@Sse()' : RequestMethod[site.requestMethod]);
  }
  // Whatever the order of the decorators: every other guard decides before an answer is looked up, and no catch-all
  // filter of the handler sees the lookup's result.
  moveLast(GUARDS_METADATA, site.method, SharedResponseGuard);
  moveLast(EXCEPTION_FILTERS_METADATA, site.method, SharedResponseFilter);
}

function moveLast(key: string, method: object, kind: new () => object): void {
  const entries = (Reflect.getMetadata(key, method) ?? []) as unknown[];
  const own = entries.filter((entry) => entry instanceof kind);
  if (own.includes(entries.at(-1))) return;
  Reflect.defineMetadata(key, [...entries.filter((entry) => !(entry instanceof kind)), ...own], method);
}
