import { RequestMethod, type Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import type { RouteHandler } from './routes.js';
import { PerfError } from '../core/perf.error.js';
import { METHOD_METADATA, MODULE_PATH, PATH_METADATA, SSE_METADATA, VERSION_METADATA } from './nest-metadata.js';
import { methodsOf } from './prototypes.js';
import { routeHandlerOf, servesRoute } from './route-handler.js';

/** A controller method that serves routes. */
export interface ControllerMethod {
  readonly controller: Type;
  readonly methodName: string;
  readonly method: object;
  readonly requestMethod: RequestMethod;
  /** `@Sse()` stands on it: it answers with server-sent events. */
  readonly sendsEvents: boolean;
  readonly handler: RouteHandler;
  /** The paths of its decorators, joined: without global prefix and version. */
  readonly paths: readonly string[];
  readonly versions: readonly string[];
}

/** Reads the controllers of an application; in the order in which Nest registers their routes. */
export function controllerMethods(modules: ModulesContainer): ControllerMethod[] {
  return [...modules.values()].flatMap((module) =>
    [...module.controllers.values()].flatMap(({ metatype }) => {
      if (typeof metatype !== 'function') return [];
      const modulePath: unknown =
        Reflect.getMetadata(MODULE_PATH + modules.applicationId, module.metatype) ??
        Reflect.getMetadata(MODULE_PATH, module.metatype);
      return methodsOf(metatype.prototype as object)
        .filter(([, method]) => servesRoute(method))
        .map(([name, method]) => readMethod(metatype as Type, name, method, modulePath));
    }),
  );
}

/** The names of the route methods of a controller class, inherited ones included. */
export const routeMethodNames = (controller: { readonly prototype: object }): string[] =>
  methodsOf(controller.prototype)
    .filter(([, method]) => servesRoute(method))
    .map(([name]) => name);

/** @throws PERF_ERR_DECORATOR for a class without routes: its decorator would do nothing */
export function requireRoutes(decorator: string, controller: Type): string[] {
  const names = routeMethodNames(controller);
  if (names.length > 0) return names;
  throw new PerfError(
    'PERF_ERR_DECORATOR',
    `${decorator} on "${controller.name}" finds no route methods. Put it on a controller with routes, or on a handler.`,
  );
}

function readMethod(controller: Type, methodName: string, method: object, modulePath: unknown): ControllerMethod {
  const read = (key: string): unknown => Reflect.getMetadata(key, method);
  const parts = [modulePath, Reflect.getMetadata(PATH_METADATA, controller), read(PATH_METADATA)];
  const versions = [read(VERSION_METADATA) ?? Reflect.getMetadata(VERSION_METADATA, controller)].flat();
  return {
    controller,
    methodName,
    method,
    requestMethod: (read(METHOD_METADATA) as RequestMethod | undefined) ?? RequestMethod.GET,
    sendsEvents: read(SSE_METADATA) === true,
    handler: routeHandlerOf(controller, method, methodName),
    paths: parts.reduce<string[]>(
      (paths, part) => paths.flatMap((path) => texts(part as string | string[] | undefined).map((end) => path + end)),
      [''],
    ),
    versions: versions.filter((version) => typeof version === 'string'),
  };
}

/** `'users/'` and `['users']` become `['/users']`; nothing and `'/'` become `['']`. */
function texts(paths: unknown): string[] {
  const all = [paths].flat().map((path) => (typeof path === 'string' ? path.replace(/^\/+|\/+$/g, '') : ''));
  return all.map((path) => (path === '' ? '' : `/${path}`));
}

/** Finds the handler behind a route: Nest emits a request method and a full path, without the handler. */
export class RouteHandlers {
  constructor(private readonly methods: readonly ControllerMethod[]) {}

  /** Null for a route that no controller declares. Handlers that share it, by version header or host, share a name. */
  find(label: string, pattern: string): RouteHandler | null {
    const path = pattern === '/' ? '' : pattern.replace(/\/+$/, '');
    let best: ControllerMethod[] = [];
    let bestLength = -1;
    for (const method of this.methods) {
      if (RequestMethod[method.requestMethod] !== label) continue;
      const length = Math.max(-1, ...method.paths.filter((end) => path.endsWith(end)).map((end) => end.length));
      if (length < bestLength || length < 0) continue;
      if (length > bestLength) best = [];
      bestLength = length;
      best.push(method);
    }
    const before = path.slice(0, path.length - Math.max(0, bestLength));
    return joinHandlers(best.filter((method) => isOfVersion(method, before, best)).map(({ handler }) => handler));
  }
}

/** Under URI versioning the path before the handler's own ends with a version. */
function isOfVersion({ versions }: ControllerMethod, before: string, all: readonly ControllerMethod[]): boolean {
  const ends = (version: string): boolean => before.endsWith(version);
  const longest = (of: readonly string[]): number => Math.max(0, ...of.filter(ends).map(({ length }) => length));
  return longest(versions) === Math.max(...all.map((method) => longest(method.versions)));
}

function joinHandlers(handlers: readonly RouteHandler[]): RouteHandler | null {
  const [first] = handlers;
  if (first === undefined) return null;
  const names = [...new Set(handlers.map(({ name }) => name))];
  if (names.length === 1) return first;
  const slow = handlers.map(({ slowMs }) => slowMs);
  return {
    ...first,
    name: names.join(' | '),
    skipped: handlers.every(({ skipped }) => skipped),
    uncompressed: handlers.some(({ uncompressed }) => uncompressed),
    slowMs: slow.every((ms) => ms === slow[0]) ? slow[0]! : null,
  };
}
