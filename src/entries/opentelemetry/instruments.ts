import type { Attributes as OtelAttributes, BatchObservableResult, Meter, Observable } from '@opentelemetry/api';
import { METRICS } from '../metrics/catalogue.js';
import type { Attributes } from '../metrics/durations.js';
import type { Measured, Metric } from '../metrics/metric.js';

/**
 * Registers every metric but the histograms as an observable instrument: an export reads what the application has counted
 * anyway.
 * @returns how to take them out again
 */
export function observe(meter: Meter, measure: () => Measured): () => void {
  const observed = METRICS.map((metric) => ({ metric, instrument: createInstrument(meter, metric) }));
  const instruments = observed.map(({ instrument }) => instrument);
  const callback = (result: BatchObservableResult): void => {
    const now = measure();
    for (const { metric, instrument } of observed) {
      for (const { value, attributes } of metric.read(now))
        result.observe(instrument, value, otelAttributes(attributes));
    }
  };
  meter.addBatchObservableCallback(callback, instruments);
  return () => meter.removeBatchObservableCallback(callback, instruments);
}

const STATUS_OF: readonly string[] = ['http.response.status_code', 'status'];

/** As the conventions have it: no `http.route` where no route matched, no status that is a class, and `error.type` where the server failed. */
export function otelAttributes(attributes: Attributes): OtelAttributes {
  const converted: OtelAttributes = {};
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'http.route' && value === '') continue;
    const isStatus = STATUS_OF.includes(key);
    if (isStatus && (value === '5xx' || Number(value) >= 500)) converted['error.type'] = String(value);
    // A class is no status code, and a code that none of its requests had would be false.
    if (!isStatus || typeof value === 'number') converted[key] = value;
  }
  return converted;
}

function createInstrument(meter: Meter, { name, unit, help, kind }: Metric): Observable {
  const options = { unit, description: help };
  if (kind === 'counter') return meter.createObservableCounter(name, options);
  if (kind === 'upDownCounter') return meter.createObservableUpDownCounter(name, options);
  return meter.createObservableGauge(name, options);
}
