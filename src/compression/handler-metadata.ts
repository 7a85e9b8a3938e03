import { RequestMethod, SetMetadata, type CustomDecorator } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { PerfError } from '../core/perf.error.js';
import type { RouteHandler } from '../core/route.js';
import type { ControllerHandlers, HandlerSite } from '../http/handlers.js';
import { EXCEPTION_FILTERS_METADATA, GUARDS_METADATA } from '../http/nest-metadata.js';
import { wrappersOf } from '../http/prototypes.js';
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
}

const UNSAID: HandlerCompression = { off: false, shared: null };

/** What the decorators of this feature say, by handler, read once at boot. Names are complete when handlers are placed. */
export class HandlerMetadata {
  private readonly known = new Map<RouteHandler, HandlerCompression>();

  /** Names of the handlers that `@NoCompression()` stands on. */
  readonly offHandlers: string[] = [];
  /** Of those that `@SharedResponse()` stands on. */
  readonly sharedHandlers = new Set<string>();

  /**
   * Reads them when handlers are placed. Where no route is, they are misplaced: on message handlers, resolvers, plain methods.
   * @throws PERF_ERR_DECORATOR there, and for `@SharedResponse()` on anything but a GET handler, here or when handlers are placed
   */
  readAll(modules: ModulesContainer, handlers: ControllerHandlers): void {
    refuseMisplaced(modules);
    handlers.around((site) => {
      this.read(site);
      return null;
    });
  }

  private read(site: HandlerSite): void {
    const { controller, handler, method } = site;
    const shared = (Reflect.getMetadata(SHARED_RESPONSE_METADATA, method) ?? null) as SharedResponseOptions | null;
    const off =
      Reflect.getMetadata(NO_COMPRESSION_METADATA, method) === true ||
      Reflect.getMetadata(NO_COMPRESSION_METADATA, controller) === true;
    if (shared !== null) {
      checkShared(site);
      this.sharedHandlers.add(handler.name);
    }
    if (off) this.offHandlers.push(handler.name);
    if (shared !== null || off) this.known.set(handler, { off, shared });
  }

  of(handler: RouteHandler | null): HandlerCompression {
    return (handler === null ? undefined : this.known.get(handler)) ?? UNSAID;
  }
}

function refuseMisplaced(modules: ModulesContainer): void {
  for (const { metatype } of wrappersOf(modules)) {
    if (typeof metatype !== 'function') continue;
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(metatype.prototype ?? {}))) {
      // The constructor is the class: what stands on that is for the routes that it may have.
      if (name === 'constructor' || typeof value !== 'function' || servesRoute(value as object)) continue;
      const where = `${metatype.name}.${name}`;
      if (Reflect.hasMetadata(SHARED_RESPONSE_METADATA, value as object)) throw needsGet(where, 'no route');
      if (!Reflect.hasMetadata(NO_COMPRESSION_METADATA, value as object)) continue;
      throw new PerfError(
        'PERF_ERR_DECORATOR',
        `@NoCompression() on "${where}" needs a route handler, got no route. Move it to the handler that answers, or to its controller.`,
      );
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
