// npm run example -- statsig: what Statsig would receive of a small API, request by request and rolled up.
// Without STATSIG_SECRET a stand-in on this machine receives the events and this prints them.
import { Controller, Get, Module, NotFoundException, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PerfModule } from 'nestjs-perf';
import { statsigSink, type StatsigSinkOptions } from 'nestjs-perf/statsig';
import { StatsigServer } from 'statsig-node';
import { standIn } from './stand-in.js';

@Controller('flights')
class FlightsController {
  @Get(':callsign')
  findOne(@Param('callsign') callsign: string) {
    if (!callsign.startsWith('NPF')) throw new NotFoundException();
    return { callsign, altitudeFeet: 31_000 };
  }
}

const secret = process.env['STATSIG_SECRET'];
const service = secret === undefined ? await standIn((line) => console.log(line)) : null;

for (const requests of ['each', 'rollup'] as const) {
  console.log(`\nrequests: '${requests}'`);
  const client = new StatsigServer(secret ?? 'secret-stand-in', service === null ? {} : { api: service.api });
  await run({ client, requests });
  // The client is the application's: the sink flushes it, and never shuts it down.
  await client.shutdownAsync(2_000);
}
service?.close();

async function run(options: StatsigSinkOptions): Promise<void> {
  @Module({
    imports: [PerfModule.forRoot({ sinks: [statsigSink({ pod: 'pod-1', ...options })] })],
    controllers: [FlightsController],
  })
  class AppModule {}
  const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] });
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  for (const path of ['/flights/NPF1', '/flights/NPF2', '/flights/XYZ']) await (await fetch(`${url}${path}`)).text();
  await app.close();
}
