import { RequestMethod, VersioningType, type Type } from '@nestjs/common';
import type { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import type { RouteHandler } from './routes.js';
import { PerfError } from '../core/perf.error.js';
import { METHOD_METADATA, MODULE_PATH, PATH_METADATA, SSE_METADATA, VERSION_METADATA } from './nest-metadata.js';
import { listMethods, servesRoute } from './prototypes.js';

export const SKIP_METADATA = 'perf:skip';
export const SLOW_METADATA = 'perf:slow-ms';

/** A controller method that serves routes. */
export interface ControllerMethod {
  readonly controller: Type;
  readonly method: object;
  readonly requestMethod: RequestMethod;
  /** `@Sse()` decorates it. */
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
      return listMethods(metatype.prototype as object)
        .filter(([, method]) => servesRoute(method))
        .map(([name, method]) => readMethod(metatype as Type, name, method, modulePath));
    }),
  );
}

/** The names of the route methods of a controller class, inherited ones included. */
export const routeMethodNames = (controller: { readonly prototype: object }): string[] =>
  listMethods(controller.prototype)
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

/** Reads the decorators of a method; those of the method win over those of its class. */
export function readHandler(controller: { readonly name: string }, method: object, methodName: string): RouteHandler {
  const read = (key: string): unknown => Reflect.getMetadata(key, method) ?? Reflect.getMetadata(key, controller);
  return {
    name: `${controller.name}.${methodName}`,
    skipped: read(SKIP_METADATA) === true,
    slowMs: (read(SLOW_METADATA) as number | undefined) ?? null,
  };
}

function readMethod(controller: Type, methodName: string, method: object, modulePath: unknown): ControllerMethod {
  const read = (key: string): unknown => Reflect.getMetadata(key, method);
  const parts = [modulePath, Reflect.getMetadata(PATH_METADATA, controller), read(PATH_METADATA)];
  const versions = [read(VERSION_METADATA) ?? Reflect.getMetadata(VERSION_METADATA, controller)].flat();
  return {
    controller,
    method,
    requestMethod: (read(METHOD_METADATA) as RequestMethod | undefined) ?? RequestMethod.GET,
    sendsEvents: read(SSE_METADATA) === true,
    handler: readHandler(controller, method, methodName),
    paths: parts.reduce<string[]>(
      (paths, part) => paths.flatMap((path) => normalizePaths(part).map((end) => path + end)),
      [''],
    ),
    versions: versions.filter((version) => typeof version === 'string'),
  };
}

/** `'users/'` and `['users']` become `['/users']`; nothing and `'/'` become `['']`. */
function normalizePaths(paths: unknown): string[] {
  const all = [paths].flat().map((path) => (typeof path === 'string' ? path.replace(/^\/+|\/+$/g, '') : ''));
  return all.map((path) => (path === '' ? '' : `/${path}`));
}

/**
 * Finds the handler of a route. Nest emits the full path alone, with prefix and version: the handler whose own path is its
 * longest end has declared it, then the one whose version stands before that end. Handlers of one route share a name, and the first's decorators.
 * `starts`: what may stand before a handler's own path; anything where it is left out.
 */
export function findHandler(
  methods: readonly ControllerMethod[],
  label: string,
  pattern: string,
  starts?: ReadonlySet<string>,
): RouteHandler | null {
  const path = pattern === '/' ? '' : pattern.replace(/\/+$/, '');
  let best: { handler: RouteHandler; length: number; versionLength: number }[] = [];
  for (const { requestMethod, paths, versions, handler } of methods) {
    if (RequestMethod[requestMethod] !== label) continue;
    for (const { length } of paths.filter((end) => path.endsWith(end))) {
      const before = path.slice(0, path.length - length);
      if (starts?.has(before) === false) continue;
      const matched = versions.filter((version) => before.endsWith(version));
      const versionLength = Math.max(0, ...matched.map((version) => version.length));
      const [known] = best;
      const order = known === undefined ? 1 : length - known.length || versionLength - known.versionLength;
      if (order > 0) best = [];
      if (order >= 0) best.push({ handler, length, versionLength });
    }
  }
  return joinHandlers(best.map(({ handler }) => handler));
}

/** Lists what Nest puts before the own paths of handlers: the global prefix, which some may be excluded from, and a version. */
export function listPathStarts(config: ApplicationConfig, methods: readonly ControllerMethod[]): ReadonlySet<string> {
  const versioning = config.getVersioning();
  const versions: string[] = [''];
  if (versioning?.type === VersioningType.URI) {
    const { prefix = 'v', defaultVersion } = versioning;
    const all = [defaultVersion, ...methods.map((method) => method.versions)].flat();
    versions.push(...all.flatMap((version) => (typeof version === 'string' ? `/${prefix || ''}${version}` : [])));
  }
  const isExcluded = (config.getGlobalPrefixOptions().exclude ?? []).length > 0;
  const prefixes = [...normalizePaths(config.getGlobalPrefix()), ...(isExcluded ? [''] : [])];
  return new Set(prefixes.flatMap((prefix) => versions.map((version) => prefix + version)));
}

function joinHandlers(handlers: readonly RouteHandler[]): RouteHandler | null {
  const [first] = handlers;
  if (first === undefined) return null;
  const names = new Set(handlers.map(({ name }) => name));
  return { ...first, name: [...names].join(' | ') };
}
