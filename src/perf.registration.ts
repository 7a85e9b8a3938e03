import type { Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { PerfError } from './core/perf.error.js';

/** Marks `PerfHostModule`, of each copy of this package. */
export const HOST = Symbol.for('nestjs-perf:host');

/** `PerfModule` was imported, and nobody has called `forRoot()`. */
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

/** Nest provides its own classes, which another copy's are not. */
export const secondNest = (): PerfError =>
  new PerfError(
    'PERF_ERR_NEST_COPIES',
    'nestjs-perf imports another copy of @nestjs/core than the one that runs this application. `npm ls @nestjs/core` shows both. ' +
      "Add the version that runs it, of @nestjs/core, @nestjs/common and the platform, to the application's own package.json, and install again.",
  );

/**
 * An application is measured once. `PerfModule` itself may be imported again where it is not global.
 * @throws PERF_ERR_REGISTERED_TWICE
 */
export function refuseSecondRegistration(modules: ModulesContainer, host: Type, perfModule: unknown): void {
  const all = [...modules.values()];
  if (all.some(({ metatype }) => metatype !== host && HOST in metatype))
    throw new PerfError(
      'PERF_ERR_REGISTERED_TWICE',
      'Two copies of nestjs-perf are in this application, and both would measure it. `npm ls nestjs-perf` shows them, ' +
        'unless it is one that is loaded by `import` and by `require()`. Import `PerfModule` of one of them.',
    );
  const imported = all.filter(({ metatype }) => metatype === perfModule);
  const isGlobal = imported.some((module) => module.isGlobal);
  const count = isGlobal ? imported.length : all.filter(({ metatype }) => metatype === host).length;
  if (count < 2) return;
  throw new PerfError(
    'PERF_ERR_REGISTERED_TWICE',
    `PerfModule is imported ${count} times in this application. ` +
      (isGlobal
        ? 'Call `PerfModule.forRoot()` once, in the root module: it is global, other modules need no import.'
        : 'Call `PerfModule.forRoot({ isGlobal: false })` once, in the root module; others import `PerfModule` itself.'),
  );
}
