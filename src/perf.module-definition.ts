import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { PerfModuleOptions } from './perf.options.js';

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<PerfModuleOptions>({ moduleName: 'Perf' }).setClassMethodName('forRoot').build();
