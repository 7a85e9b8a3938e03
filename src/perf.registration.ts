import type { Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { PerfError } from './core/perf.error.js';

/** The error where `PerfModule` is imported without options. */
export const noOptions = (): PerfError =>
  new PerfError(
    'PERF_ERR_OPTION',
    'PerfModule has no options: it was imported without `forRoot()`, or its `useFactory` returned nothing. ' +
      'Import `PerfModule.forRoot()` once, in the root module.',
  );

export const misplacedExtensions = (): PerfError =>
  new PerfError(
    'PERF_ERR_OPTION',
    '`extensions` must stand beside `useFactory`, not in what it returns: their providers are part of the module. ' +
      'Write PerfModule.forRootAsync({ extensions: [cache()], useFactory: … }).',
  );

/** The error where this library imports another copy of Nest: its classes are no tokens of the application. */
export const secondNest = (): PerfError =>
  new PerfError(
    'PERF_ERR_NEST_COPIES',
    'nestjs-perf imports another copy of @nestjs/core than the one that runs this application. `npm ls @nestjs/core` shows both. ' +
      "Add the version that runs it, of @nestjs/core, @nestjs/common and the platform, to the application's own package.json, and install again.",
  );

/**
 * An application is measured once. `PerfModule` itself may be imported again.
 * @throws PERF_ERR_REGISTERED_TWICE
 */
export function refuseSecondRegistration(modules: ModulesContainer, host: Type): void {
  const count = [...modules.values()].filter(({ metatype }) => metatype === host).length;
  if (count < 2) return;
  throw new PerfError(
    'PERF_ERR_REGISTERED_TWICE',
    `\`PerfModule.forRoot()\` is imported ${count} times in this application. Call it once, in the root module: it is global, other ` +
      'modules need no import. With `isGlobal: false` they import `PerfModule` itself.',
  );
}
