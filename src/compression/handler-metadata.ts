import { RequestMethod } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { PerfError } from '../core/perf.error.js';
import type { ControllerMethod } from '../request/handlers.js';
import { GUARDS_METADATA } from '../request/nest-metadata.js';
import { listUnroutedMethods } from '../request/prototypes.js';
import { isUncompressed } from './uncompressed.js';
import { SHARED_RESPONSE_METADATA, SharedResponseGuard } from './shared-response/shared-response.decorator.js';

/**
 * Checks the decorated handlers of an application; returns the names of those that share their answers.
 * @throws PERF_ERR_DECORATOR for `@SharedResponse()` on anything but a GET handler, and for either on a method without a route
 */
export function checkHandlers(modules: ModulesContainer, methods: readonly ControllerMethod[]): readonly string[] {
  refuseMisplaced(modules);
  const shared = methods.filter(({ method }) => Reflect.hasMetadata(SHARED_RESPONSE_METADATA, method));
  for (const method of shared) checkShared(method);
  return shared.map(({ handler }) => handler.name);
}

function refuseMisplaced(modules: ModulesContainer): void {
  for (const { where, method } of listUnroutedMethods(modules)) {
    if (Reflect.hasMetadata(SHARED_RESPONSE_METADATA, method)) throw needsGet(where, 'no route');
    if (!isUncompressed(method)) continue;
    throw new PerfError(
      'PERF_ERR_DECORATOR',
      `@NoCompression() on "${where}" needs a route handler, got no route. Move it to the handler that answers, or to its controller.`,
    );
  }
}

function needsGet(where: string, given: string): PerfError {
  return new PerfError(
    'PERF_ERR_DECORATOR',
    `@SharedResponse() on "${where}" needs a GET handler, got ${given}. ` +
      'Only what is read can be shared: remove the decorator, or move it to the GET handler that serves the data.',
  );
}

function checkShared(site: ControllerMethod): void {
  if (site.requestMethod !== RequestMethod.GET || site.sendsEvents) {
    throw needsGet(site.handler.name, site.sendsEvents ? '@Sse()' : RequestMethod[site.requestMethod]);
  }
  // Moves ours behind all others, whatever the order of the decorators: a guard that rejects must win over a kept answer.
  const guards = (Reflect.getMetadata(GUARDS_METADATA, site.method) ?? []) as unknown[];
  const own = guards.filter((guard) => guard instanceof SharedResponseGuard);
  if (guards.at(-1) instanceof SharedResponseGuard) return;
  const others = guards.filter((guard) => !(guard instanceof SharedResponseGuard));
  Reflect.defineMetadata(GUARDS_METADATA, [...others, ...own], site.method);
}
