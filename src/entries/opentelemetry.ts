export { openTelemetrySink, type OpenTelemetrySinkOptions } from './opentelemetry/sink.js';
