import { RequestMethod, type Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import type { RouteHandler } from './routes.js';
import { PerfError } from '../core/perf.error.js';
import { METHOD_METADATA, MODULE_PATH, PATH_METADATA, SSE_METADATA, VERSION_METADATA } from './nest-metadata.js';
import { listMethods } from './prototypes.js';
import { readHandler, servesRoute } from './route-handler.js';

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

/** A handler whose own path ends a route's. `prefix`: the part before it without its version, `'/api'`. */
interface Candidate {
  readonly method: ControllerMethod;
  readonly pathLength: number;
  readonly versionLength: number;
  readonly prefix: string;
}

/** Finds the handler behind a route: Nest emits a request method and a full path, with neither the handler nor the global prefix. */
export class RouteHandlers {
  private readonly learned = new Set<string>();
  /** The routes that each text may be the prefix of. The application's own prefix precedes most of them. */
  private readonly routesByPrefix = new Map<string, number>();

  constructor(private readonly methods: readonly ControllerMethod[]) {}

  /** Takes a registered route as evidence of the global prefix. */
  learn(label: string, pattern: string): void {
    const key = `${label} ${pattern}`;
    if (this.learned.has(key)) return;
    this.learned.add(key);
    for (const prefix of new Set(this.listCandidates(label, pattern).map((candidate) => candidate.prefix)))
      this.routesByPrefix.set(prefix, this.countRoutes(prefix) + 1);
  }

  /** Null for a route that no controller declares. Handlers that share it, by version header or host, share a name. */
  find(label: string, pattern: string): RouteHandler | null {
    this.learn(label, pattern);
    let best: Candidate[] = [];
    for (const candidate of this.listCandidates(label, pattern)) {
      const order = best.length === 0 ? 1 : this.compare(candidate, best[0]!);
      if (order > 0) best = [candidate];
      else if (order === 0) best.push(candidate);
    }
    return joinHandlers(best.map(({ method }) => method.handler));
  }

  /** With the global prefix; else by the longest path of their own, then by the longest version. */
  private compare(one: Candidate, other: Candidate): number {
    return (
      this.countRoutes(one.prefix) - this.countRoutes(other.prefix) ||
      one.pathLength - other.pathLength ||
      one.versionLength - other.versionLength
    );
  }

  private countRoutes(prefix: string): number {
    return this.routesByPrefix.get(prefix) ?? 0;
  }

  private listCandidates(label: string, pattern: string): Candidate[] {
    const path = pattern === '/' ? '' : pattern.replace(/\/+$/, '');
    const methods = this.methods.filter(({ requestMethod }) => RequestMethod[requestMethod] === label);
    return methods.flatMap((method) =>
      method.paths.filter((end) => path.endsWith(end)).map((end) => readCandidate(method, path, end.length)),
    );
  }
}

/** Under URI versioning the path before the handler's own ends with a version. */
function readCandidate(method: ControllerMethod, path: string, pathLength: number): Candidate {
  const before = path.slice(0, path.length - pathLength);
  const versions = method.versions.filter((version) => before.endsWith(version));
  const versionLength = Math.max(0, ...versions.map(({ length }) => length));
  const prefix = versionLength === 0 ? before : before.slice(0, before.lastIndexOf('/'));
  return { method, pathLength, versionLength, prefix };
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
