// npm run example -- prometheus [--keep]: a small API that Prometheus can scrape, and one scrape of it.
import { parseArgs } from 'node:util';
import { Controller, Get, Module, NotFoundException, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { loggerSink, PerfModule } from 'nestjs-perf';
import { prometheusSink } from 'nestjs-perf/prometheus';

@Controller('flights')
class FlightsController {
  @Get(':callsign')
  findOne(@Param('callsign') callsign: string) {
    if (!callsign.startsWith('NPF')) throw new NotFoundException();
    return { callsign, altitudeFeet: 31_000 };
  }
}

@Module({
  imports: [PerfModule.forRoot({ sinks: [loggerSink(), prometheusSink()] })],
  controllers: [FlightsController],
})
class AppModule {}

const { values } = parseArgs({ options: { keep: { type: 'boolean', default: false } } });
const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] });
app.enableShutdownHooks();
// With --keep on the port that prometheus.yml scrapes.
await app.listen(values.keep ? 3000 : 0, '127.0.0.1');
const url = await app.getUrl();

for (const path of ['/flights/NPF1', '/flights/NPF2', '/flights/XYZ', '/no/such/page']) {
  await (await fetch(`${url}${path}`)).text();
}
console.log(`GET ${url}/metrics\n`);
console.log(await (await fetch(`${url}/metrics`)).text());
if (!values.keep) await app.close();
