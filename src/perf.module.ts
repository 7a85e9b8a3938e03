import {
  Inject,
  Module,
  type BeforeApplicationShutdown,
  type DynamicModule,
  type NestModule,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
  type OnApplicationShutdown,
  type OnModuleInit,
  type Provider,
} from '@nestjs/common';
import { HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { optionError } from './core/option.js';
import { deferFeature } from './defer/defer.feature.js';
import { Deferrer } from './defer/deferrer.js';
import { PerfError } from './core/perf.error.js';
import { experimentsFeature } from './experiments/experiments.feature.js';
import { Experiments } from './experiments/experiments.js';
import { PerfInterceptor } from './latency/perf.interceptor.js';
import { RequestLifecycle } from './http/lifecycle.js';
import { Routes } from './http/routes.js';
import { resourcesFeature } from './resources/resources.feature.js';
import { ResourceSampler } from './resources/resource-sampler.js';
import { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, OPTIONS_TYPE } from './perf.module-definition.js';
import { FEATURES, resolveOptions, type ResolvedOptions } from './perf.options.js';
import { needsContext } from './perf.context.js';
import { PerfRuntime } from './perf.runtime.js';
import { PerfService } from './perf.service.js';
import { PERF_RESOLVED_OPTIONS } from './perf.tokens.js';

/**
 * Import it once, in the root module: `imports: [PerfModule.forRoot()]`. Every feature is on by default.
 * A wrong option stops the boot with `PERF_ERR_OPTION`, a second import with `PERF_ERR_REGISTERED_TWICE`.
 */
@Module({
  providers: [
    {
      provide: PERF_RESOLVED_OPTIONS,
      inject: [{ token: MODULE_OPTIONS_TOKEN, optional: true }, ModulesContainer],
      useFactory: optionsOf,
    },
    PerfRuntime,
    { provide: RequestLifecycle, inject: [PerfRuntime], useFactory: (runtime: PerfRuntime) => runtime.requests },
    { provide: Routes, inject: [PerfRuntime], useFactory: (runtime: PerfRuntime) => runtime.routes },
    service(ResourceSampler, resourcesFeature),
    service(Deferrer, deferFeature),
    service(Experiments, experimentsFeature),
    PerfService,
    PerfInterceptor,
  ],
  exports: [Deferrer, PerfService, PerfInterceptor, Experiments, ResourceSampler, RequestLifecycle, Routes],
})
export class PerfModule
  extends ConfigurableModuleClass
  implements
    NestModule,
    OnModuleInit,
    OnApplicationBootstrap,
    OnModuleDestroy,
    BeforeApplicationShutdown,
    OnApplicationShutdown
{
  private configured = false;

  constructor(
    @Inject(PerfRuntime) private readonly runtime: PerfRuntime,
    @Inject(PERF_RESOLVED_OPTIONS) private readonly options: ResolvedOptions,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
    @Inject(HttpAdapterHost) private readonly adapterHost: HttpAdapterHost,
  ) {
    super();
  }

  /** Everything on by default; see {@link PerfModuleOptions}. */
  static override forRoot(options: typeof OPTIONS_TYPE = {}): DynamicModule {
    refuseNonObject(options);
    return super.forRoot(options);
  }

  /** Nest awaits it before it registers routes, in `NestFactory` and under `@nestjs/testing` alike. */
  async configure(): Promise<void> {
    this.configured = true;
    await this.runtime.start(this.adapterHost.httpAdapter, this.contextEnabled(), this.modules);
  }

  async onModuleInit(): Promise<void> {
    this.runtime.routesRegistered();
    // An application without HTTP never calls `configure()`.
    if (!this.configured) await this.runtime.start(null, this.contextEnabled(), this.modules);
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.runtime.bootstrapped();
  }

  /** The first that Nest says of closing, on SIGTERM too: open streams may hold the server for long after it. */
  async onModuleDestroy(): Promise<void> {
    await this.runtime.closing();
  }

  /** Without an HTTP server to wait for, this is the last moment at which everybody's queues and databases are open. */
  async beforeApplicationShutdown(): Promise<void> {
    if (!this.configured) await this.runtime.stop();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.runtime.stop();
  }

  private contextEnabled(): boolean {
    return needsContext(this.options, this.modules, PerfModule);
  }
}

/** What a feature offers for injection, whether it is on or off. */
function service(token: abstract new (...parameters: never[]) => object, feature: (typeof FEATURES)[number]): Provider {
  return { provide: token, inject: [PerfRuntime], useFactory: (runtime: PerfRuntime) => runtime.serviceOf(feature) };
}

/** All other providers depend on it: what is wrong with the registration is said here, before Nest complains. */
function optionsOf(options: unknown, modules: ModulesContainer): ResolvedOptions {
  refuseSecondRegistration(modules);
  if (options === undefined) {
    throw new PerfError(
      'PERF_ERR_OPTION',
      'PerfModule has no options: it was imported without `forRoot()`, or its `useFactory` returned nothing. ' +
        'Import `PerfModule.forRoot()` once, in the root module: it is global, other modules need no import.',
    );
  }
  return resolveOptions(options);
}

/** Nest copies the keys of whatever it gets: a number would be no options, a text one option for each letter. */
function refuseNonObject(options: unknown): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw optionError('', 'an object', options);
  }
}

function refuseSecondRegistration(modules: ModulesContainer): void {
  const registrations = [...modules.values()].filter((module) => module.metatype === PerfModule);
  if (registrations.length < 2) return;
  throw new PerfError(
    'PERF_ERR_REGISTERED_TWICE',
    `PerfModule is imported ${registrations.length} times in this application, so every request would be measured ${registrations.length} times. ` +
      'Call `PerfModule.forRoot()` once, in the root module: it is global, other modules need no import.',
  );
}
