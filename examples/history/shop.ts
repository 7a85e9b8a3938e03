import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Inject, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { fileHistory, PerfModule, PerfService } from 'nestjs-perf';

/** How often the page of orders asks the database: the new release asks again for each order. */
const QUERIES: Readonly<Record<string, number>> = { '1.0.0': 1, '1.1.0': 4 };

/** A release of the shop: `history` is what outlives it. */
export async function openShop(release: string, directory: string): Promise<NestFastifyApplication> {
  @Controller()
  class ShopController {
    constructor(@Inject(PerfService) private readonly perf: PerfService) {}

    @Get('orders')
    async orders() {
      for (let i = 0; i < QUERIES[release]!; i++) await this.query();
      return [];
    }

    @Get('cart')
    async cart() {
      await this.query();
      return [];
    }

    private query(): Promise<void> {
      return this.perf.timed('postgres shop', () => delay(80));
    }
  }

  @Module({
    imports: [PerfModule.forRoot({ release, sinks: [], history: { store: fileHistory({ directory }) } })],
    controllers: [ShopController],
  })
  class ShopModule {}

  const app = await NestFactory.create<NestFastifyApplication>(ShopModule, new FastifyAdapter(), { logger: ['error'] });
  await app.listen(0, '127.0.0.1');
  return app;
}
