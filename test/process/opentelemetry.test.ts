import { Controller, Get, Param } from '@nestjs/common';
import type { DataPoint, Histogram } from '@opentelemetry/sdk-metrics';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openTelemetrySink } from '../../src/entries/opentelemetry.js';
import { startApp } from '../fixtures/app.js';
import { OtelLoopback } from '../fixtures/otel.js';

@Controller('users')
class UsersController {
  @Get(':id')
  find(@Param('id') id: string) {
    return { id };
  }
}

let otel: OtelLoopback;
beforeEach(() => {
  otel = new OtelLoopback();
});
afterEach(() => otel.stop());

it('exports what the clients counted; closing the application exports the last interval', async () => {
  const running = await startApp('fastify', {
    perf: { sinks: [openTelemetrySink({ meterProvider: otel.provider })] },
    metadata: { controllers: [UsersController] },
  });
  for (let i = 0; i < 30; i++) await (await fetch(`${running.url}${i < 20 ? '/users/' : '/x'}${i}`)).text();
  await running.close();
  const points = otel.last().get('http.server.request.duration')!.dataPoints as DataPoint<Histogram>[];
  expect(points.map(({ attributes, value }) => [attributes, value.count])).toEqual([
    [{ 'http.request.method': 'GET', 'http.route': '/users/:id', 'http.response.status_code': 200 }, 20],
    [{ 'http.request.method': 'GET', 'http.response.status_code': 404 }, 10],
  ]);
  const durations = running.sink.records.map((record) => (record.kind === 'request' ? record.durationMs : 0));
  const sum = points.reduce((total, { value }) => total + value.sum!, 0);
  expect(sum).toBeCloseTo(durations.reduce((a, b) => a + b, 0) / 1_000, 9);
});
