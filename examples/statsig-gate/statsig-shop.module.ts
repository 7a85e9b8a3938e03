import { Module, type DynamicModule } from '@nestjs/common';
import { PerfModule } from 'nestjs-perf';
import { statsigGates, type StatsigGateClient } from 'nestjs-perf/statsig';
import { InitializeController, UserGuard } from '../static-gate/shop.module.js';

/** The same shop; Statsig decides. */
export function statsigShop(client: StatsigGateClient): DynamicModule {
  @Module({})
  class StatsigShopModule {}
  return {
    module: StatsigShopModule,
    imports: [PerfModule.forRoot({ experiments: { gates: statsigGates(client) }, sinks: [] })],
    controllers: [InitializeController],
    providers: [UserGuard],
  };
}
