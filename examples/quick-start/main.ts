// npm run example -- quick-start [--seconds 70]: a module with `PerfModule.forRoot()` and nothing else, and what it logs by
// itself under load. A summary comes once a minute, so only a run of more than a minute has one.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Controller, Get, Module, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PerfModule } from 'nestjs-perf';

@Controller('orders')
class OrdersController {
  @Get(':id')
  async findOne(@Param('id') id: string) {
    await delay(5);
    return { id, items: Array.from({ length: 100 }, (_, i) => ({ sku: `A-${i}`, amount: i % 5 })) };
  }
}

@Controller('search')
class SearchController {
  /** A rare search meets a cold index. */
  @Get(':term')
  async search(@Param('term') term: string) {
    await delay(term === 'rare' ? 1_200 : 20);
    return { term };
  }
}

@Controller('reports')
class ReportsController {
  @Get(':id')
  report(@Param('id') id: string) {
    return { id, checksum: renderRows(id) };
  }
}

/** Fine with ten rows; with the customer who has many, nobody else is served for 120 ms. */
function renderRows(id: string): number {
  const endsAt = performance.now() + 120;
  let checksum = id.length;
  while (performance.now() < endsAt) checksum = (checksum * 31 + 7) % 65_521;
  return checksum;
}

@Module({
  imports: [PerfModule.forRoot()],
  controllers: [OrdersController, SearchController, ReportsController],
})
class AppModule {}

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '3' } } });
const app = await NestFactory.create(AppModule);
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');

// The visitors are a process of their own, so that what they spend is not the application's.
const load = fork(new URL('load.js', import.meta.url), [await app.getUrl(), values.seconds]);
await once(load, 'exit');
await app.close();
