import {
  Module,
  type ConfigurableModuleAsyncOptions,
  type DynamicModule,
  type FactoryProvider,
  type InjectionToken,
  type Provider,
} from '@nestjs/common';
import { boolean, optionError } from './core/option.js';
import { PerfError } from './core/perf.error.js';
import {
  extensionsOption,
  refusingProviders,
  refuseTwice,
  readToken,
  type PerfExtension,
} from './request/extension.js';
import { PerfInterceptor } from './work/perf.interceptor.js';
import { WorkFeature } from './work/work.feature.js';
import { PerfHostModule } from './perf.host-module.js';
import { FEATURES, type PerfModuleOptions } from './perf.options.js';
import { noOptions } from './perf.registration.js';
import { PerfService } from './perf.service.js';
import { PERF_EXTENSIONS, PERF_SERVICE } from './perf.tokens.js';

/** Whether every module may inject what this one exports. */
export interface PerfModuleScope {
  /**
   * Every module of the application; false: those that import `PerfModule` itself, beside the one with `forRoot()`.
   * @default true
   */
  isGlobal?: boolean;
}

const isGlobal = boolean({ default: true });
/** Options beside those that a factory makes. */
const BESIDE_FACTORY: ReadonlySet<string> = new Set([
  'imports',
  'inject',
  'provideInjectionTokensFrom',
  'useFactory',
  'useClass',
  'useExisting',
  'isGlobal',
  'extensions',
]);

const services = FEATURES.flatMap(({ service, token }) =>
  service === undefined ? [] : provideFromHost(service, token, (feature: { service: object }) => feature.service),
);

const providers: Provider[] = [
  ...services,
  provideFromHost(PerfService, PERF_SERVICE, (service) => service),
  provideFromHost(PerfInterceptor, WorkFeature, (work) => new PerfInterceptor(work)),
];
const provided: InjectionToken[] = [...services.map(({ provide }) => provide), PerfService, PerfInterceptor];

/**
 * Import it once, in the root module: `imports: [PerfModule.forRoot()]`. Every feature is on by default.
 * A wrong option stops the boot with `PERF_ERR_OPTION`, a second import with `PERF_ERR_REGISTERED_TWICE`.
 */
@Module({ providers, exports: provided })
export class PerfModule {
  /** Everything on by default; see {@link PerfModuleOptions}. */
  static forRoot(options: PerfModuleOptions & PerfModuleScope = {}): DynamicModule {
    refuseNonObject(options);
    const { isGlobal: scope, extensions, ...rest } = options;
    return createModule(PerfHostModule.forRoot(rest), scope, extensions);
  }

  /** Registers the module with options that a provider makes: `useFactory`, or `create()` of the class in `useClass` or `useExisting`. */
  static forRootAsync(
    options: ConfigurableModuleAsyncOptions<PerfModuleOptions> &
      PerfModuleScope &
      Pick<PerfModuleOptions, 'extensions'>,
  ): DynamicModule {
    refuseNonObject(options);
    refuseUnknownWay(options);
    const { isGlobal: scope, extensions, ...rest } = options;
    return createModule(PerfHostModule.forRootAsync(rest), scope, extensions);
  }
}

/** The module that applications import, over the one host module that has the providers. Extensions join the host. */
function createModule(
  host: DynamicModule,
  scope: boolean | undefined,
  given: readonly PerfExtension[] | undefined,
): DynamicModule {
  const extensions = extensionsOption.read(given, 'extensions');
  refuseTwice(extensions);
  const added = [...extensions.flatMap((extension) => extension.providers), ...refusingProviders(extensions)];
  const own = [...(host.providers ?? []), { provide: PERF_EXTENSIONS, useValue: extensions }, ...added];
  return {
    module: PerfModule,
    imports: [{ ...host, providers: own, exports: [...(host.exports ?? []), ...added.map(readToken)] }],
    global: isGlobal.read(scope, 'isGlobal'),
  };
}

/** Nest copies the keys of any value: without this error a text would be one option for each letter. */
function refuseNonObject(options: unknown): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw optionError('', 'an object', options);
  }
}

/** Requires one way to make the options. Nest would ignore an option that stands beside the factory. */
function refuseUnknownWay(options: object): void {
  const { useFactory, useClass, useExisting } = options as Record<string, unknown>;
  const ways = [useFactory, useClass, useExisting].filter((way) => way !== undefined);
  const isFunction = useFactory === undefined || typeof useFactory === 'function';
  if (ways.length !== 1 || !isFunction) {
    const expected = 'an object with one of `useFactory` (a function), `useClass` and `useExisting`';
    throw optionError('forRootAsync()', expected, options);
  }
  for (const key of Object.keys(options)) {
    if (BESIDE_FACTORY.has(key)) continue;
    const message = `\`forRootAsync()\` has no option \`${key.slice(0, 60)}\`: an option of the module stands in what \`useFactory\` returns.`;
    throw new PerfError('PERF_ERR_OPTION', message);
  }
}

/** Provides a class out of a provider of the host module. Optional there, so that a missing `forRoot()` is our error, with its fix. */
function provideFromHost(
  provide: InjectionToken,
  token: InjectionToken,
  pick: (found: never) => object | undefined,
): FactoryProvider {
  return {
    provide,
    inject: [{ token, optional: true }],
    useFactory: (found: object | undefined) => {
      if (found === undefined) throw noOptions();
      return pick(found as never);
    },
  };
}
