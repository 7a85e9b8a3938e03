import { ConfigurableModuleBuilder } from '@nestjs/common';
import { boolean } from './core/option.js';
import type { PerfModuleOptions } from './perf.options.js';

const isGlobal = boolean({ default: true });

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<PerfModuleOptions>({ moduleName: 'Perf' })
    .setClassMethodName('forRoot')
    .setExtras({ isGlobal: true }, (definition, extras) => ({
      ...definition,
      global: isGlobal.read(extras.isGlobal, 'isGlobal'),
    }))
    .build();
