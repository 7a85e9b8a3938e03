import { setTimeout as delay } from 'node:timers/promises';
import {
  Controller,
  Get,
  Injectable,
  Module,
  type CanActivate,
  type DynamicModule,
  type ExecutionContext,
} from '@nestjs/common';
import { Experiment, PerfModule, Variant, type GateClient } from 'nestjs-perf';

/** Stands in for real authentication: whoever says who they are is believed. */
@Injectable()
export class UserGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<{ headers: Record<string, string>; user?: { id: string } }>();
    request.user = { id: request.headers['x-user'] ?? 'nobody' };
    return true;
  }
}

@Controller('v1')
class InitializeController {
  /** The old way waits for a cleanup that the client has no use for. */
  @Get('initialize')
  @Experiment('skip_async_cleanup')
  async initialize(@Variant('skip_async_cleanup') variant: 'on' | 'off') {
    await delay(15 + Math.random() * 10);
    if (variant === 'off') await delay(4);
    return { ready: true };
  }

  @Get('prices')
  async prices() {
    await delay(5);
    return { usd: 9 };
  }
}

@Module({})
class ShopModule {}

/** The shop, whose gates decide who skips the cleanup. */
export const buildShop = (gates: GateClient): DynamicModule => ({
  module: ShopModule,
  imports: [PerfModule.forRoot({ experiments: { gates }, sinks: [] })],
  controllers: [InitializeController],
  providers: [UserGuard],
});
