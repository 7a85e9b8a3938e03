import type { ModulesContainer } from '@nestjs/core';
import { PerfError } from '../../core/perf.error.js';
import { methodsOf } from '../../http/prototypes.js';
import { servesRoute } from '../../http/route-handler.js';
import { worksOn } from './defer-work.decorator.js';

/**
 * Stops the boot when `@DeferWork` stands where there is no response to run after: it would silently never run.
 * @throws PERF_ERR_DECORATOR
 */
export function refuseStrayWork(modules: ModulesContainer): void {
  for (const module of modules.values()) {
    for (const { metatype } of [...module.providers.values(), ...module.controllers.values()]) {
      if (typeof metatype !== 'function') continue;
      for (const [name, method] of methodsOf((metatype.prototype ?? {}) as object)) {
        if (worksOn(method).length === 0 || servesRoute(method)) continue;
        throw new PerfError(
          'PERF_ERR_DECORATOR',
          `@DeferWork stands on "${metatype.name}.${name}", which serves no HTTP route. ` +
            'Inject `Deferrer` and call `deferrer.defer()` there.',
        );
      }
    }
  }
}
