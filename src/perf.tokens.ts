import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { PerfModuleOptions } from './perf.options.js';

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<PerfModuleOptions>({
  moduleName: 'Perf',
})
  .setClassMethodName('forRoot')
  .build();

export const PERF_EXTENSIONS = Symbol('PERF_EXTENSIONS');
/** The sinks that receive records; `overridePerfSinks` replaces them. */
export const PERF_SINKS = Symbol('PERF_SINKS');
/** The one `PerfService`, whichever module injects it. */
export const PERF_SERVICE = Symbol('PERF_SERVICE');
