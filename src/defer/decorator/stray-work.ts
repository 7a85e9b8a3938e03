import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { PerfError } from '../../core/perf.error.js';
import { worksOn } from './defer-work.decorator.js';

/** Nest's metadata key of a route's path. */
const PATH_METADATA = 'path';

/**
 * Stops the boot when `@DeferWork` stands where there is no response to run after: it would silently never run.
 * @throws PERF_ERR_DECORATOR
 */
export function refuseStrayWork(modules: ModulesContainer): void {
  const scanner = new MetadataScanner();
  for (const module of modules.values()) {
    for (const { metatype } of [...module.providers.values(), ...module.controllers.values()]) {
      if (typeof metatype !== 'function') continue;
      const prototype = (metatype.prototype ?? null) as Record<string, { readonly name: string }> | null;
      for (const name of scanner.getAllMethodNames(prototype)) {
        const method = prototype![name]!;
        if (worksOn(method).length === 0 || Reflect.hasMetadata(PATH_METADATA, method)) continue;
        throw new PerfError(
          'PERF_ERR_DECORATOR',
          `@DeferWork stands on "${metatype.name}.${method.name}", which serves no HTTP route. ` +
            'Inject `Deferrer` and call `deferrer.defer()` there.',
        );
      }
    }
  }
}
