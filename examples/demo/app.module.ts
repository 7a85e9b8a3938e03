import { setTimeout as delay } from 'node:timers/promises';
import {
  Body,
  Controller,
  Get,
  Module,
  NotFoundException,
  Param,
  Post,
  ServiceUnavailableException,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { DeferWork, Experiment, PerfModule, staticGates, Variant } from 'nestjs-perf';
import { bullmqStore } from 'nestjs-perf/bullmq';
import { flightFeed } from './flight-feed.js';
import { ReportsController } from './reports.controller.js';
import { BookOrder, CheckoutController, SendReceipt } from './receipts.js';
import { UserGuard } from './user.guard.js';

const redisUrl = process.env['REDIS_URL'] || undefined;

@Controller('flights')
class FlightsController {
  /** The live feed that every visitor polls: about 1 MB of JSON. */
  @Get()
  feed() {
    return flightFeed();
  }

  @Get(':callsign')
  findOne(@Param('callsign') callsign: string) {
    const flight = flightFeed().flights.find((candidate) => candidate.callsign === callsign);
    if (flight === undefined) throw new NotFoundException(`No flight ${callsign}`);
    return flight;
  }
}

@Controller('orders')
class OrdersController {
  private lastId = 0;

  /** Booked after the response; kept in Redis where there is one. */
  @Post()
  @DeferWork(BookOrder, { durable: redisUrl !== undefined })
  async create(@Body() order: { item: string }) {
    this.lastId += 1;
    await delay(3);
    return { id: this.lastId, item: order.item };
  }
}

@Controller('search')
class SearchController {
  /** Most searches are quick; a rare one meets a cold index. A new index is tried on half of the users. */
  @Get(':term')
  @Experiment('new_index')
  async search(@Param('term') term: string, @Variant('new_index') newIndex: 'on' | 'off') {
    await delay(term.startsWith('rare') ? 1_100 : 5 + Math.random() * 20);
    if (newIndex === 'off') await delay(4);
    return { term, hits: term.length };
  }
}

@Controller('payments')
class PaymentsController {
  @Get('status')
  status(): never {
    throw new ServiceUnavailableException('The payment provider is down');
  }
}

@Module({
  imports: [
    PerfModule.forRoot({
      dashboard: true,
      experiments: { gates: staticGates({ new_index: 0.5 }) },
      defer: redisUrl === undefined ? true : { store: bullmqStore({ connection: redisUrl }) },
    }),
  ],
  controllers: [
    FlightsController,
    OrdersController,
    SearchController,
    PaymentsController,
    ReportsController,
    CheckoutController,
  ],
  providers: [SendReceipt, BookOrder, { provide: APP_GUARD, useClass: UserGuard }],
})
export class DemoModule {}
