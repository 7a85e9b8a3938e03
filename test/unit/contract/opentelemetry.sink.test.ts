import { openTelemetrySink } from '../../../src/entries/opentelemetry.js';
import { OtelLoopback } from '../../fixtures/otel.js';
import { sinkContract } from './sink.contract.js';

sinkContract('openTelemetrySink', () => {
  const otel = new OtelLoopback();
  return {
    sink: openTelemetrySink({ meterProvider: otel.provider }),
    requestsArrived: () => otel.requestCount(),
    hang: () => otel.hang(),
    dispose: () => otel.stop(),
  };
});
