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
import { PerfModule } from 'nestjs-perf';
import { flightFeed } from './flight-feed.js';
import { ReportsController } from './reports.controller.js';
import { CheckoutController, SendReceipt } from './receipts.js';

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

  @Post()
  async create(@Body() order: { item: string }) {
    this.lastId += 1;
    await delay(3);
    return { id: this.lastId, item: order.item };
  }
}

@Controller('search')
class SearchController {
  /** Most searches are quick; a rare one meets a cold index. */
  @Get(':term')
  async search(@Param('term') term: string) {
    await delay(term.startsWith('rare') ? 1_100 : 5 + Math.random() * 20);
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
  imports: [PerfModule.forRoot({ dashboard: true })],
  controllers: [
    FlightsController,
    OrdersController,
    SearchController,
    PaymentsController,
    ReportsController,
    CheckoutController,
  ],
  providers: [SendReceipt],
})
export class DemoModule {}
