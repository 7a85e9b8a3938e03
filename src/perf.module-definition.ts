import { ConfigurableModuleBuilder, type Provider } from '@nestjs/common';
import { boolean } from './core/option.js';
import { extensionsOption, type PerfExtension } from './http/extension.js';
import type { PerfModuleOptions } from './perf.options.js';
import { PerfRuntime } from './perf.runtime.js';
import { PERF_EXTENSIONS } from './perf.tokens.js';

const isGlobal = boolean({ default: true });

/** What is known before the options are: with `forRootAsync()` it stands beside `useFactory`. */
export interface PerfModuleExtras {
  /**
   * Whether other modules can inject this module's services without importing it.
   * @default true
   */
  isGlobal?: boolean;
  /**
   * Features that come from entries of their own: `cache()`, `offload()`, `guard()`, `record()`. Each at most once.
   * @default []
   */
  extensions?: readonly PerfExtension[];
}

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<PerfModuleOptions>({ moduleName: 'Perf' })
    .setClassMethodName('forRoot')
    .setExtras<PerfModuleExtras>({ isGlobal: true, extensions: [] }, (definition, extras) => {
      const extensions = extensionsOption.read(extras.extensions, 'extensions');
      const services = extensions.flatMap(servicesOf);
      return {
        ...definition,
        global: isGlobal.read(extras.isGlobal, 'isGlobal'),
        providers: [...(definition.providers ?? []), { provide: PERF_EXTENSIONS, useValue: extensions }, ...services],
        exports: [...(definition.exports ?? []), ...services.map(({ provide }) => provide)],
      };
    })
    .build();

type FactoryProvider = Extract<Provider, { useFactory: unknown }>;

function servicesOf({ name, services = [] }: PerfExtension): FactoryProvider[] {
  return services.map(({ token, of }) => ({
    provide: token,
    inject: [PerfRuntime],
    useFactory: (runtime: PerfRuntime) => of(runtime.extension(name)),
  }));
}
