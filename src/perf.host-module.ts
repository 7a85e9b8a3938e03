import { Global, Inject, Module, type NestModule, type Provider } from '@nestjs/common';
import { APP_INTERCEPTOR, ModulesContainer } from '@nestjs/core';
import { Overview } from './ports/overview.js';
import { PerfApplication } from './request/application.js';
import { FEATURE_OPTIONS, providePort } from './request/feature.js';
import { makeApplication } from './perf.application.js';
import { FEATURES, resolveOptions, type ProvidedOptions } from './perf.options.js';
import { misplacedExtensions, noOptions, refuseSecondRegistration, secondNest } from './perf.registration.js';
import { PerfRuntime } from './perf.runtime.js';
import { PerfService } from './perf.service.js';
import type { SinkOption } from './perf.sinks.js';
import { PerfInterceptor } from './work/perf.interceptor.js';
import { WorkFeature } from './work/work.feature.js';
import { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, PERF_SERVICE, PERF_SINKS } from './perf.tokens.js';

/** `PerfService` and the like, for providers of extensions. Not exported: with `isGlobal: false` other modules must not find them here. */
const forExtensions: Provider[] = [
  { provide: PerfService, useExisting: PERF_SERVICE },
  ...FEATURES.flatMap(({ service, token }) =>
    service === undefined ? [] : providePort<{ service: object }>(service, token, (feature) => feature.service),
  ),
];

/** The providers that an application has once. Global: every `PerfModule` finds it. @internal */
@Global()
@Module({
  providers: [
    {
      provide: FEATURE_OPTIONS,
      inject: [
        { token: MODULE_OPTIONS_TOKEN, optional: true },
        { token: ModulesContainer, optional: true },
      ],
      useFactory: provideOptions,
    },
    {
      provide: PERF_SINKS,
      inject: [FEATURE_OPTIONS],
      useFactory: ({ resolved }: ProvidedOptions) => resolved.sinks,
    },
    {
      provide: PerfApplication,
      inject: [FEATURE_OPTIONS, PERF_SINKS],
      useFactory: ({ resolved }: ProvidedOptions, sinks: readonly SinkOption[]) => makeApplication(resolved, sinks),
    },
    ...FEATURES.flatMap(({ providers }) => providers),
    PerfRuntime,
    { provide: Overview, useExisting: PerfRuntime },
    { provide: PERF_SERVICE, useClass: PerfService },
    {
      provide: APP_INTERCEPTOR,
      inject: [WorkFeature],
      // Nest ignores null.
      useFactory: (work: WorkFeature) => (work.isGlobal ? new PerfInterceptor(work) : null),
    },
    ...forExtensions,
  ],
  // `PerfModule` makes the services that applications inject out of these.
  exports: [PerfApplication, PerfRuntime, PERF_SERVICE, ...FEATURES.map(({ token }) => token)],
})
export class PerfHostModule extends ConfigurableModuleClass implements NestModule {
  constructor(@Inject(PerfRuntime) private readonly runtime: PerfRuntime) {
    super();
  }

  /** Nest awaits it before it registers routes, in `NestFactory` and under `@nestjs/testing` alike. */
  async configure(): Promise<void> {
    await this.runtime.start(true);
  }
}

/** Every other provider needs the options, so that this error comes before one of Nest's own. Nest's providers are optional for that. */
function provideOptions(options: unknown, modules: ModulesContainer | undefined): ProvidedOptions {
  if (modules === undefined) throw secondNest();
  refuseSecondRegistration(modules, PerfHostModule);
  if (options === undefined) throw noOptions();
  const resolved = resolveOptions(options);
  if (resolved.extensions.length > 0) throw misplacedExtensions();
  return { resolved };
}
