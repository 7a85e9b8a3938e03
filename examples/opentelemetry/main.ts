// npm run example -- opentelemetry [--keep]: a small API whose metrics the OpenTelemetry SDK prints.
import { parseArgs } from 'node:util';
import { Controller, Get, Module, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ConsoleMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { loggerSink, PerfModule } from 'nestjs-perf';
import { openTelemetrySink } from 'nestjs-perf/opentelemetry';

// In production: an OTLP exporter, in a file that `node --import` loads before the application. See docs/opentelemetry.md.
const exporter = new ConsoleMetricExporter();
const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 10_000 });
const meterProvider = new MeterProvider({ readers: [reader] });

@Controller('flights')
class FlightsController {
  @Get(':callsign')
  findOne(@Param('callsign') callsign: string) {
    return { callsign, altitudeFeet: 31_000 };
  }
}

@Module({
  imports: [PerfModule.forRoot({ sinks: [loggerSink(), openTelemetrySink({ meterProvider })] })],
  controllers: [FlightsController],
})
class AppModule {}

const { values } = parseArgs({ options: { keep: { type: 'boolean', default: false } } });
const app = await NestFactory.create(AppModule, { logger: ['warn', 'error'] });
app.enableShutdownHooks();
await app.listen(0, '127.0.0.1');
const url = await app.getUrl();

for (const path of ['/flights/NPF1', '/flights/NPF2', '/no/such/page']) await (await fetch(`${url}${path}`)).text();
if (values.keep) console.log(`${url}/flights/NPF1: exported every ten seconds. Ctrl+C ends it.`);
else {
  // Closing the application exports the last interval.
  await app.close();
  await meterProvider.shutdown();
}
